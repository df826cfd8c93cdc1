/** A request from a program elsewhere becomes a task, or is passed over with its reason. Nothing is read before its signature is. */
import { HeddleError, jsonProblem, never } from "@heddle/protocol";
import { takeOrder, type OrderDoor, type TakenOrder } from "../take-order.ts";
import { generic } from "./generic.ts";
import { github } from "./github.ts";
import type { Inbound, Parsed, Parser, WebhookSource } from "./source.ts";

export interface WebhookDoor extends OrderDoor {
  readonly sources: readonly WebhookSource[];
}

export interface InboundWebhook extends Inbound {
  readonly source: string;
  /** The sender has shown a token that allows it. */
  readonly isTrusted?: boolean;
}

export type WebhookOutcome =
  | ({ readonly kind: "taken" } & TakenOrder)
  | { readonly kind: "ignored"; readonly reason: string };

export async function takeWebhook(
  door: WebhookDoor,
  webhook: InboundWebhook,
  now: number = Date.now(),
): Promise<WebhookOutcome> {
  const source = door.sources.find(({ name }) => name === webhook.source);
  if (source === undefined) {
    throw new HeddleError("door.not-found", `there is no source of webhooks ${JSON.stringify(webhook.source)}`);
  }
  const parser = parserOf(source);
  requireSigned(parser, source, webhook, now);
  const parsed = parse(parser, source, webhook);
  if (parsed.kind === "ignored") return parsed;
  const taken = await takeOrder(door, {
    file: "order.json",
    // As JSON, so that no text can be read as a key.
    text: JSON.stringify(parsed.fields),
    source: { kind: "webhook", ref: parsed.ref ?? source.name },
    workspace: parsed.workspace ?? source.workspace,
    ...(parsed.id === undefined ? {} : { key: `webhook:${source.name}:${parsed.id}` }),
  });
  return { kind: "taken", ...taken };
}

function parserOf({ kind }: WebhookSource): Parser {
  switch (kind) {
    case "generic":
      return generic;
    case "github":
      return github;
    default:
      return never(kind);
  }
}

function requireSigned(parser: Parser, source: WebhookSource, webhook: InboundWebhook, now: number): void {
  if (webhook.isTrusted === true) return;
  if (source.secret === undefined) {
    throw new HeddleError(
      "door.unauthorized",
      `${source.name} has no secret, so no request can be verified; set secret_env in [inbox.webhooks.${source.name}]`,
    );
  }
  if (!parser.isSigned(webhook, source.secret, now)) {
    throw new HeddleError(
      "door.unauthorized",
      `the signature of this request for ${source.name} is missing, wrong or old`,
    );
  }
}

function parse(parser: Parser, source: WebhookSource, webhook: InboundWebhook): Parsed {
  try {
    return parser.parse(webhook, source);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new HeddleError(
      "task.invalid",
      `the body for ${source.name} is not JSON: ${jsonProblem(webhook.body.toString("utf8"))}`,
      {
        cause: error,
      },
    );
  }
}
