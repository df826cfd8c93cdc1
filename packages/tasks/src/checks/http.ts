/**
 * A URL answers as expected. Only the URL of the spec is requested, redirects are not followed, and metadata services are
 * refused.
 */
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { createHash } from "node:crypto";
import { HeddleError, reasonOf, type LeafCheckOf } from "@heddle/protocol";
import { reachOf } from "@heddle/protocol/ip-address";
import { checkedLookup, RefusedAddress } from "../notify/sinks/post.ts";
import { cannot, failed, passed, type RunLeaf } from "./check.ts";
import { endsOf } from "./commands.ts";
import { shown } from "./shown.ts";

const MAX_BODY_BYTES = 1024 * 1024;

export const http: RunLeaf<"http"> = async (check, { signal }) => {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(check.timeoutMs)]);
  let answer: Answer;
  try {
    answer = await ask(check, limit);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HeddleError) throw error;
    if (error instanceof RefusedAddress) throw new HeddleError("policy.denied", error.message);
    if (limit.aborted) return cannot(`${check.url} had not answered after ${check.timeoutMs} ms`);
    const why = reasonOf(error);
    const message = `${check.url} does not respond: ${why}`;
    const isRefused = error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
    return isRefused ? failed(message) : cannot(message);
  }
  const { status, location, body, isWhole } = answer;
  const more = { output: endsOf(body), sha256: createHash("sha256").update(body).digest("hex") };
  if (status !== check.status) {
    const where = location === undefined ? "" : ` and points to ${shown(location)}, which is not followed`;
    return failed(`${check.url} answers ${status}, not ${check.status}${where}`, more);
  }
  if (check.contains === undefined || body.includes(check.contains))
    return passed(`${check.url} answers ${status}`, more);
  const message = `${check.url} answers ${status}, without ${shown(check.contains)}`;
  return isWhole ? failed(message, more) : cannot(`${message} in the first ${MAX_BODY_BYTES} bytes`, more);
};

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  readonly isWhole: boolean;
}

async function ask({ url, method }: LeafCheckOf<"http">, signal: AbortSignal): Promise<Answer> {
  const address = new URL(url);
  if (address.username !== "" || address.password !== "") {
    throw new HeddleError("usage.invalid", "an address with a password in it is stored with the task; leave it out");
  }
  const host = address.hostname.replace(/^\[|\]$/g, "");
  const refusal = isIP(host) === 0 ? undefined : refusalOf(host);
  if (refusal !== undefined) throw new HeddleError("policy.denied", refusal);
  const request = address.protocol === "https:" ? requestHttps : requestHttp;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(address, {
      method,
      agent: false,
      lookup: checkedLookup(refusalOf),
      signal,
      headers: { connection: "close" },
    })
      .once("response", resolve)
      .once("error", reject)
      .end();
  });
  const { body, isWhole } = await readBody(response);
  return { status: response.statusCode ?? 0, location: response.headers.location, body, isWhole };
}

/** Metadata services give the credentials of the machine to anyone who asks. */
function refusalOf(address: string): string | undefined {
  return reachOf(address) === "metadata" ? `${address} is a cloud metadata service and is not asked` : undefined;
}

async function readBody(response: IncomingMessage): Promise<{ body: string; isWhole: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_BODY_BYTES) break;
  }
  const whole = Buffer.concat(chunks);
  return { body: whole.subarray(0, MAX_BODY_BYTES).toString("utf8"), isWhole: size <= MAX_BODY_BYTES };
}
