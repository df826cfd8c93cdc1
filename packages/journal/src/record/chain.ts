/**
 * The hash chain of a stream. An event's hash covers everything stored about it and the hash before it; its body enters
 * only through `bodyHash`, so that a body can be purged without breaking the chain. The stored text is hashed.
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
  return sha256(linkText(link));
}

/** The canonical form of a link, written out because a large store has millions of them. */
export function linkText({ id, stream, version, at, author, type, v, bodyHash, prevHash }: Link): string {
  const front = `{"at":${at},"author":${quoted(author)},"bodyHash":${quoted(bodyHash)},"chain":1,"id":${quoted(id)},`;
  return `${front}"prevHash":${quoted(prevHash)},"stream":${quoted(stream)},"type":${quoted(type)},"v":${v},"version":${version}}`;
}

/** Most need nothing but the quotes. */
const PLAIN = /^[\w.:/-]*$/;

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : canonical(text);
}

/** What the first event of a stream links to: nothing can be put before it, and it fits no other stream. */
export function genesisOf(stream: string): string {
  return sha256(`heddle/1|${stream}`);
}
