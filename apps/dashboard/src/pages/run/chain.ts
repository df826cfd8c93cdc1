/**
 * The chain of a stream, checked in the browser from its events alone: what a server says about itself is not believed, but
 * compared. Every body, every link and every signed head that the server shows; signatures are for `heddle verify`.
 */
import { canonical, genesisText, linkText } from "@heddle/protocol/chain-link";
import { api } from "../../live/session.ts";

export interface ChainFound {
  readonly events: number;
  /** The first event that does not fit, and how. */
  readonly problem?: string;
  /** Signed heads that fit the events they name. */
  readonly heads: number;
  /** There are more events than are checked here. */
  readonly isCut: boolean;
}

/** More is for the command line. */
const MOST_EVENTS = 20_000;

type Stream = { readonly threadId: string } | { readonly taskId: string };

export async function checkChain(of: Stream, signal?: AbortSignal): Promise<ChainFound> {
  if (globalThis.crypto?.subtle === undefined)
    throw new Error("This browser computes no hashes here: the page was not loaded over HTTPS or from this machine.");
  const stream = "threadId" in of ? of.threadId : of.taskId;
  const heads = new Map((await api().evidence.checkpoints(of)).data.map(({ seq, hash }) => [seq, hash]));
  let before = await sha256(genesisText(stream));
  let [events, fitting] = [0, 0];
  const found = (problem?: string): ChainFound => ({
    events,
    heads: fitting,
    isCut: events >= MOST_EVENTS,
    ...(problem === undefined ? {} : { problem }),
  });
  for await (const heard of api().follow({ ...of, live: false, ...(signal === undefined ? {} : { signal }) })) {
    if (heard.kind !== "event") continue;
    const { id, seq, at, author, hash, prevHash, body } = heard.event;
    if (seq !== events + 1) return found(`event ${events + 1} is missing`);
    if (prevHash !== before) return found(`event ${seq} does not link to the one before it`);
    const bodyHash = await sha256(canonical(body));
    const link = { id, stream, version: seq, at, author, type: body.type, v: body.v, bodyHash, prevHash };
    if ((await sha256(linkText(link))) !== hash) return found(`event ${seq} is not what its hash says`);
    const head = heads.get(seq);
    if (head !== undefined && head !== hash) return found(`event ${seq} is not the one that was signed`);
    if (head !== undefined) fitting += 1;
    before = hash;
    events = seq;
    if (events >= MOST_EVENTS) break;
  }
  return found();
}

const ENCODER = new TextEncoder();

async function sha256(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", ENCODER.encode(text)));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
