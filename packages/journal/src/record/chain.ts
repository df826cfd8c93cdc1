/**
 * The hash chain of a stream. An event's hash covers everything stored about it and the hash before it; its body enters
 * only through `bodyHash`, so that a body can be purged without breaking the chain. The stored text is hashed.
 */
import { hash as digest } from "node:crypto";
import { genesisText, linkText, type Link } from "@heddle/protocol/chain-link";

export type { Link };
export { linkText };

export function sha256(text: string): string {
  return digest("sha256", text);
}

export function hashOf(link: Link): string {
  return sha256(linkText(link));
}

export function genesisOf(stream: string): string {
  return sha256(genesisText(stream));
}
