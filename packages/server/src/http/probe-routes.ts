/**
 * For what watches over the process: whether it lives, whether it can be sent work, and its figures. The probes need no
 * token, so they tell codes and levels and no names, paths or values. Whether it lives never depends on the store, or an outage of
 * the store would restart every server.
 */
import { Health, Ready } from "@heddle/protocol/http";
import { CAREFUL_HEADERS, sendJson } from "./answer.ts";
import { route, type HttpContext, type Route } from "./route.ts";

const alive = (): Promise<{ ok: boolean }> => Promise.resolve({ ok: true });

export const PROBE_ROUTES: readonly Route[] = [
  route({
    name: "livez",
    on: "GET /livez",
    summary: "Whether the process answers; needs no token and never asks the store",
    scope: "public",
    answer: Health,
    handle: alive,
  }),
  route({
    name: "healthz",
    on: "GET /healthz",
    summary: "The same as /livez, by the name that Codex has for it",
    scope: "public",
    answer: Health,
    handle: alive,
  }),
  route({
    name: "readyz",
    on: "GET /readyz",
    summary:
      "Whether work can be sent here: the store is writable and undamaged, the kernel gives the sandbox that turns need, " +
      "and the server is not stopping; with 503 the reasons. Needs no token",
    scope: "public",
    answer: Ready,
    async handle(_given, { context, response }) {
      const reasons = await whyNotReady(context);
      const { level: sandbox } = await context.facts.sandbox();
      const redaction = context.heddle.journal.redactor.known.count > 0 ? "values" : "patterns";
      const answer: Ready = { ok: reasons.length === 0, reasons: [...reasons], sandbox, redaction };
      if (answer.ok) return answer;
      // An error as every other refusal is one, and the reasons beside it.
      const message = reasons.map(({ message: text }) => text).join("; ");
      sendJson(response, 503, { error: { code: "door.overloaded", message }, ...answer });
      return answer;
    },
  }),
  route({
    name: "metrics",
    on: "GET /metrics",
    summary: "Metrics in the text format of Prometheus: how much, how long and how many, never whose",
    scope: "read",
    answer: "text",
    async handle(_given, { context, response }) {
      const text = Buffer.from(await (await context.metrics()).text());
      const type = "text/plain; version=0.0.4; charset=utf-8";
      response.writeHead(200, { ...CAREFUL_HEADERS, "content-type": type, "content-length": text.length }).end(text);
    },
  }),
];

interface Reason {
  readonly code: string;
  readonly message: string;
}

async function whyNotReady({ heddle: { journal }, facts, turns }: HttpContext): Promise<readonly Reason[]> {
  const reasons: Reason[] = [];
  if (turns.isDraining) reasons.push({ code: "draining", message: "the server is stopping" });
  const refusal = await journal.refusal();
  // Without the message of the refusal, which names paths.
  if (refusal !== undefined)
    reasons.push({ code: refusal.code, message: `the store cannot be written: ${refusal.code}` });
  else if ((await journal.tasks.waitingFor("store")).length > 0)
    reasons.push({ code: "store.full", message: "tasks wait until the store can be written" });
  const { level, isNeeded } = await facts.sandbox();
  if (level === "none" && isNeeded !== false)
    reasons.push({ code: "sandbox.unavailable", message: "the kernel gives no sandbox: heddle doctor" });
  return reasons;
}
