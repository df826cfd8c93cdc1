/**
 * Traces of the turns of this process, sent to a collector. They are read from the journal as everybody reads it, so a turn
 * never waits for them, and a process without a collector loads none of this.
 */
import { thisHolder } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { APPENDS, SANDBOXES } from "@heddle/protocol/measure";
import type { ConfigFile } from "../config/schema.ts";
import { createExporter } from "./otlp.ts";
import { createSpans } from "./spans.ts";

export interface TraceOptions {
  readonly journal: Journal;
  readonly config: Pick<ConfigFile, "telemetry">;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
}

/** How long the end of a process may be kept for the last spans. */
const LAST_MS = 1_000;
const TRACES_PATH = "v1/traces";

export async function openTraces({ journal, config, env, log }: TraceOptions): Promise<AsyncDisposable> {
  const { endpoint, serviceName, headers } = collectorOf(config, env);
  // What opens the collector is stored by no turn.
  journal.redactor.learn(Object.values(headers));
  const exporter = createExporter({ url: endpoint, headers, serviceName });
  const spans = createSpans(thisHolder());
  const closing = new AbortController();
  let seen = await journal.position();
  let isBehind = Promise.withResolvers<void>();
  const follow = async (): Promise<void> => {
    for await (const event of journal.tail({ after: seen, signal: closing.signal })) {
      exporter.add(spans.take(event));
      seen = event.position;
      isBehind.resolve();
      isBehind = Promise.withResolvers();
    }
  };
  const following = follow().catch((error: unknown) => {
    if (!closing.signal.aborted) log(`cannot trace turns any more: ${reasonOf(error)}`);
  });
  const measuring = new DisposableStack();
  measuring.use(
    APPENDS.listen(({ of, stream, ...timed }) => {
      if (of === journal) exporter.add(spans.timed("append", stream, timed));
    }),
  );
  measuring.use(SANDBOXES.listen(({ threadId, ...timed }) => exporter.add(spans.timed("sandbox", threadId, timed))));
  return {
    async [Symbol.asyncDispose]() {
      const until = performance.now() + LAST_MS;
      const end = await journal.position().catch(() => seen);
      while (seen < end && performance.now() < until) {
        let late: NodeJS.Timeout | undefined;
        const overdue = new Promise<void>((resolve) => {
          late = setTimeout(resolve, Math.max(0, until - performance.now()));
        });
        await Promise.race([isBehind.promise, overdue]);
        clearTimeout(late);
      }
      closing.abort();
      measuring.dispose();
      await following;
      await exporter.close(Math.max(0, until - performance.now()));
    },
  };
}

/** Under the names that OpenTelemetry has for them; the configuration counts more than the environment. */
function collectorOf({ telemetry }: Pick<ConfigFile, "telemetry">, env: NodeJS.ProcessEnv) {
  const whole = env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] ?? "";
  const base = telemetry?.endpoint ?? (whole === "" ? env["OTEL_EXPORTER_OTLP_ENDPOINT"] : undefined);
  const text = base === undefined ? whole : new URL(TRACES_PATH, base.endsWith("/") ? base : `${base}/`).href;
  const endpoint = URL.parse(text);
  if (endpoint === null || !/^https?:$/.test(endpoint.protocol)) {
    throw new HeddleError("config.invalid", `the collector's address "${text}" must be an http:// or https:// URL`);
  }
  const named = Object.entries(telemetry?.env_http_headers ?? {}).flatMap(([name, variable]) => {
    const value = env[variable] ?? "";
    return value === "" ? [] : [[name, value] as const];
  });
  const given = env["OTEL_EXPORTER_OTLP_TRACES_HEADERS"] ?? env["OTEL_EXPORTER_OTLP_HEADERS"] ?? "";
  const listed = given.split(",").flatMap((pair) => {
    const at = pair.indexOf("=");
    return at <= 0 ? [] : [[pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())] as const];
  });
  const serviceName = telemetry?.service_name ?? env["OTEL_SERVICE_NAME"] ?? "heddle";
  return { endpoint, serviceName, headers: Object.fromEntries([...listed, ...named]) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
