/**
 * Claude where another company serves it: the body of the Messages API as it is, but for the model, which stands in the path,
 * and the version, which stands in the body. Vertex AI answers with server-sent events, Bedrock in frames of its own.
 */
import { HeddleError } from "@heddle/protocol";
import { AwsEventReader } from "../requests/aws-event-stream.ts";
import { segment } from "./path-segment.ts";
import type { Provider } from "../providers/providers.ts";
import type { EventSource } from "../requests/sse.ts";
import { record } from "./untrusted.ts";
import type { WireCall } from "./wire.ts";

export interface Hosting {
  /** The request of the maker's own API as it is put here. */
  adapt(call: WireCall, model: string): WireCall;
  /** Absent: server-sent events. */
  readonly createReader?: (provider: Provider) => EventSource;
}

const BETA = "anthropic-beta";

export function hostingOf(auth: "vertex" | "bedrock"): Hosting {
  return auth === "vertex" ? VERTEX : BEDROCK;
}

const VERTEX: Hosting = {
  adapt(call, model) {
    const { model: _model, ...body } = bodyOf(call);
    return {
      path: `/models/${segment(model)}:streamRawPredict`,
      headers: pick(call, BETA),
      body: { anthropic_version: "vertex-2023-10-16", ...body },
    };
  },
};

const BEDROCK: Hosting = {
  adapt(call, model) {
    const { model: _model, stream: _stream, ...body } = bodyOf(call);
    const betas = call.headers?.[BETA]?.split(",").map((beta) => beta.trim());
    return {
      path: `/model/${segment(model)}/invoke-with-response-stream`,
      headers: { accept: "application/vnd.amazon.eventstream" },
      body: {
        anthropic_version: "bedrock-2023-05-31",
        ...(betas === undefined ? {} : { anthropic_beta: betas }),
        ...body,
      },
    };
  },
  createReader: (provider) => new AwsEventReader(provider),
};

function bodyOf({ body }: WireCall): Readonly<Record<string, unknown>> {
  const fields = record(body);
  if (fields === undefined) throw new HeddleError("internal", "the body of a request is not an object");
  return fields;
}

function pick({ headers }: WireCall, name: string): Record<string, string> {
  const value = headers?.[name];
  return value === undefined ? {} : { [name]: value };
}
