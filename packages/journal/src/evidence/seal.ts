/**
 * The signature of a home under something that is handed on together with a record: over its hash, with the key that signs
 * checkpoints. It says that this home wrote all of it; no signature of a checkpoint can stand for it.
 */
import { canonical } from "@heddle/protocol";
import { pathsOf } from "../home.ts";
import { loadSigner, verifierOf } from "./keys.ts";

/** undefined: this home has no key. */
export function seal(home: string, sha256: string): string | undefined {
  return loadSigner(pathsOf(home).keys)?.sign(sealedText(sha256));
}

/** `publicKey` as PEM. */
export function isSealedBy(publicKey: string, sha256: string, signature: string): boolean {
  return verifierOf(publicKey).verify(sealedText(sha256), signature);
}

function sealedText(sha256: string): string {
  return canonical({ seal: 1, sha256 });
}
