/**
 * The key that signs checkpoints: made once, by the process that needs it first, readable by the owner alone, with its
 * public half beside it. An existing key file is never replaced, even when damaged: old signatures depend on it.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  verify,
  type KeyObject,
} from "node:crypto";
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { sha256 } from "../record/chain.ts";
import { makePrivateFolder, syncFolder } from "../home.ts";

export interface Signer {
  readonly keyId: string;
  sign(text: string): string;
}

export interface Verifier {
  readonly keyId: string;
  verify(text: string, signature: string): boolean;
}

export function loadOrMakeSigner(folder: string): Signer {
  if (!existsSync(privatePath(folder))) makeKey(folder);
  return signerOf(folder);
}

export function loadSigner(folder: string): Signer | undefined {
  return existsSync(privatePath(folder)) ? signerOf(folder) : undefined;
}

function signerOf(folder: string): Signer {
  const path = privatePath(folder);
  const key = parse(path, createPrivateKey);
  const publicKey = createPublicKey(key);
  putOnce(publicPath(folder), pem(publicKey));
  return {
    keyId: keyIdOf(publicKey),
    sign: (text) => sign(undefined, Buffer.from(text), key).toString("base64"),
  };
}

/** undefined: no key was ever made. The public half is enough, so that others can verify too. */
export function loadVerifier(folder: string): Verifier | undefined {
  const key = readPublicKey(folder);
  return key && toVerifier(key);
}

export type Key =
  | { readonly kind: "usable"; readonly verifier: Verifier | undefined }
  | { readonly kind: "unusable"; readonly message: string };

export function loadKey(folder: string): Key {
  try {
    return { kind: "usable", verifier: loadVerifier(folder) };
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    return { kind: "unusable", message: `checkpoints cannot be verified: ${error.message}` };
  }
}

export function verifierOf(publicPem: string): Verifier {
  return toVerifier(createPublicKey(publicPem));
}

export function loadPublicKey(folder: string): string | undefined {
  const key = readPublicKey(folder);
  return key && pem(key);
}

function toVerifier(key: KeyObject): Verifier {
  return {
    keyId: keyIdOf(key),
    verify: (text, signature) => verify(undefined, Buffer.from(text), key, Buffer.from(signature, "base64")),
  };
}

function readPublicKey(folder: string): KeyObject | undefined {
  const [secret, open] = [privatePath(folder), publicPath(folder)];
  // The private key first: the public file may be torn.
  if (existsSync(secret)) {
    try {
      return createPublicKey(parse(secret, createPrivateKey));
    } catch (error) {
      if (!existsSync(open)) throw error;
    }
  }
  return existsSync(open) ? parse(open, createPublicKey) : undefined;
}

const privatePath = (folder: string): string => join(folder, "journal.key");
const publicPath = (folder: string): string => join(folder, "journal.pub");

function parse(path: string, create: (pem: string) => KeyObject): KeyObject {
  const content = readFileSync(path, "utf8");
  try {
    return create(content);
  } catch (cause) {
    throw new HeddleError("store.damaged", `${path} is no longer a key; restore it from a copy`, { cause });
  }
}

function makeKey(folder: string): void {
  makePrivateFolder(folder);
  const { privateKey } = generateKeyPairSync("ed25519");
  putOnce(privatePath(folder), privateKey.export({ type: "pkcs8", format: "pem" }).toString());
}

/** Whole or not at all, and never over an existing file: a finished temporary file gets the name by a link. */
function putOnce(path: string, content: string): void {
  if (existsSync(path)) return;
  const temporary = `${path}.${randomUUID()}`;
  const fd = openSync(temporary, "wx", 0o600);
  try {
    writeSync(fd, content);
    fsyncSync(fd);
    linkSync(temporary, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    closeSync(fd);
    unlinkSync(temporary);
  }
  syncFolder(join(path, ".."));
}

/** The bytes before an Ed25519 key in its standard form (RFC 8410). */
const ED25519_HEAD = Buffer.from("302a300506032b6570032100", "hex");

/** Like its own export, which takes a millisecond at the first call: every run signs once. */
function pem(key: KeyObject): string {
  const { crv, x } = key.export({ format: "jwk" });
  if (crv !== "Ed25519" || x === undefined) return key.export({ type: "spki", format: "pem" }).toString();
  const body = Buffer.concat([ED25519_HEAD, Buffer.from(x, "base64url")]).toString("base64");
  return `-----BEGIN PUBLIC KEY-----\n${body}\n-----END PUBLIC KEY-----\n`;
}

function keyIdOf(key: KeyObject): string {
  return sha256(pem(key)).slice(0, 16);
}
