import type { ConfigFile } from "../config/schema.ts";
import type { LogFactsOptions } from "./log-facts.ts";
import type { TraceOptions } from "./open-traces.ts";

export type { LogEntry, LogLevel } from "./log-facts.ts";

/** Closed with `ends`. Without a collector nothing is loaded. */
export async function traceTurns(ends: AsyncDisposableStack, options: TraceOptions): Promise<void> {
  if (hasCollector(options.config, options.env)) ends.use(await (await import("./open-traces.ts")).openTraces(options));
}

function hasCollector({ telemetry }: Pick<ConfigFile, "telemetry">, env: NodeJS.ProcessEnv): boolean {
  if (env["OTEL_SDK_DISABLED"] === "true") return false;
  if (telemetry !== undefined) return telemetry.endpoint !== undefined;
  const named = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
  return named.some((name) => (env[name] ?? "") !== "");
}

/** Closed with `ends`. */
export async function logFacts(ends: AsyncDisposableStack, options: LogFactsOptions): Promise<void> {
  ends.use(await (await import("./log-facts.ts")).followFacts(options));
}
