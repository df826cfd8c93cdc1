/** What issuers of tests have in common: how they misbehave, answer and read. */
import type { IncomingMessage, ServerResponse } from "node:http";

/** In every token; an output that holds it has leaked one. */
export const CANARY = "canary-7f3a91c2e5";

export type IssuerFault =
  /** Sends the caller elsewhere. */
  | { readonly kind: "redirect"; readonly to: string }
  | { readonly kind: "status"; readonly status: number; readonly body?: unknown }
  /** Nothing ever comes. */
  | { readonly kind: "silent" }
  | { readonly kind: "reset" };

export function misbehave(response: ServerResponse, fault: IssuerFault): void {
  switch (fault.kind) {
    case "redirect":
      response.writeHead(302, { location: fault.to }).end();
      return;
    case "status":
      send(response, fault.status, fault.body ?? {});
      return;
    case "reset":
      response.destroy();
      return;
    case "silent":
      return;
  }
}

export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export async function readText(incoming: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += String(chunk);
  return text;
}

/** The fields of a form or of a JSON object, as text. */
export function fieldsOf(text: string): Record<string, string> {
  if (text === "") return {};
  const pairs: Iterable<[string, unknown]> = text.startsWith("{")
    ? Object.entries(JSON.parse(text) as Record<string, unknown>)
    : new URLSearchParams(text);
  return Object.fromEntries([...pairs].map(([name, value]) => [name, String(value)]));
}
