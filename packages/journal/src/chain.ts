/**
 * The hash chain of a stream. An event's hash covers everything stored about it and the hash before it; its body enters
 * only through `bodyHash`, so that a body can be purged without breaking the chain. What is hashed is the stored text.
 */
import { hash as digest } from "node:crypto";
import { canonical } from "@heddle/protocol";

export interface Link {
  readonly id: string;
  readonly stream: string;
  readonly version: number;
  readonly at: number;
  readonly author: string;
  readonly type: string;
  readonly v: number;
  readonly bodyHash: string;
  readonly prevHash: string;
}

export function sha256(text: string): string {
  return digest("sha256", text);
}

export function hashOf(link: Link): string {
  const { id, stream, version, at, author, type, v, bodyHash, prevHash } = link;
  return sha256(canonical({ chain: 1, id, stream, version, at, author, type, v, bodyHash, prevHash }));
}

/** What the first event of a stream links to: nothing can be put before it, and it fits no other stream. */
export function genesisOf(stream: string): string {
  return sha256(`heddle/1|${stream}`);
}
