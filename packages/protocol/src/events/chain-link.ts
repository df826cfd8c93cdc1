/** What the hash of an event is over: everything stored about it, its body by its hash, and the hash before it. */
import { canonical } from "./canonical.ts";

export { canonical };

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

/** The hash of this is what the first event of a stream links to: nothing can be put before it, and it fits no other stream. */
export function genesisText(stream: string): string {
  return `heddle/1|${stream}`;
}
