/**
 * The signature of a home under something that is passed on with a record: over its hash, with the key that signs
 * checkpoints. It proves that this home wrote all of it, and no checkpoint signature can replace it.
 */
import { canonical } from "@heddle/protocol";
import { pathsOf } from "../home.ts";
import { loadSigner, verifierOf, type Signer, type Verifier } from "./keys.ts";

export function seal(home: string, sha256: string): string | undefined {
  return sealWith(loadSigner(pathsOf(home).keys), sha256);
}

export function sealWith(signer: Signer | undefined, sha256: string): string | undefined {
  return signer?.sign(sealedText(sha256));
}

export function isSealedBy(publicKey: string, sha256: string, signature: string): boolean {
  return isSealed(verifierOf(publicKey), sha256, signature);
}

export function isSealed(verifier: Verifier, sha256: string, signature: string): boolean {
  return verifier.verify(sealedText(sha256), signature);
}

function sealedText(sha256: string): string {
  return canonical({ seal: 1, sha256 });
}
