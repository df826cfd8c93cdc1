/**
 * The page of the dashboard: files of one folder, as a build left them, sent to whoever asks. They hold no secret and
 * need no token; what the page does is asked of the routes, with one. A path is served only when it is plain words below
 * the folder, so nothing outside can be named; what is no file is a place in the page, and gets its index.
 */
import { createHash } from "node:crypto";
import { lstat, readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import path from "node:path";

/** Files with other endings are not served, those of a build's own use among them. */
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
};

/** One policy for every file, because a worker has that of its own script. */
const PAGE_HEADERS = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types heddle",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
} as const;

/** A name with the hash of its content in it stands for that content for ever. */
const HASHED = /^\/assets\/.+-[\w-]{8,}\.\w+$/;
const PLAIN_PATH = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;
/** Of programs: what is not a route there stays an unknown route. */
const OF_PROGRAMS = /^\/(?:api|mcp|livez|healthz|readyz|metrics)(?:\/|$)/;
const INDEX = "/index.html";
const ENCODINGS = [
  { name: "br", ending: ".br" },
  { name: "gzip", ending: ".gz" },
] as const;
const MAX_FILE_BYTES = 8 * 1024 * 1024;
const MAX_KEPT = 256;

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Heddle: the dashboard is not built</title>
<h1>The dashboard is not built</h1>
<p>In the folder of Heddle's source run: <code>npm run build</code>
<p>Then load this page again. The server itself works: its routes are at <code>/api/</code>.
</html>
`;

/** Whether a request is for the page rather than for a program's route. */
export function isForPage({ method, headers }: IncomingMessage, pathname: string): boolean {
  if ((method !== "GET" && method !== "HEAD") || OF_PROGRAMS.test(pathname)) return false;
  return pathname === "/" || path.posix.extname(pathname) in TYPES || wantsDocument(headers.accept);
}

function wantsDocument(accept: string | undefined): boolean {
  return accept?.split(",").some((part) => part.split(";")[0]?.trim() === "text/html") === true;
}

interface Kept {
  readonly bytes: Buffer;
  readonly tag: string;
  /** When and how large it was read. */
  readonly stamp: string;
}

export class DashboardPage {
  readonly #folder: string;
  readonly #kept = new Map<string, Kept>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async send(request: IncomingMessage, response: ServerResponse, pathname: string): Promise<void> {
    const ending = path.posix.extname(pathname);
    const wanted = ending in TYPES ? pathname : INDEX;
    const found = await this.#find(wanted, request.headers["accept-encoding"]);
    if (found !== undefined) return sendFile(request, response, { ...found, path: wanted });
    const isDocument = wanted === INDEX;
    const headers = { ...PAGE_HEADERS, "cache-control": "no-store" };
    const body = Buffer.from(isDocument ? NOT_BUILT : "there is no such file\n");
    const type = TYPES[isDocument ? ".html" : ".txt"] ?? "";
    response.writeHead(isDocument ? 503 : 404, { ...headers, "content-type": type, "content-length": body.length });
    response.end(body);
  }

  async #find(wanted: string, accepted: string | undefined): Promise<Found | undefined> {
    if (!PLAIN_PATH.test(wanted)) return undefined;
    const file = path.join(this.#folder, wanted);
    for (const { name, ending } of ENCODINGS) {
      if (!accepts(accepted, name)) continue;
      const packed = await this.#read(`${file}${ending}`);
      if (packed !== undefined) return { ...packed, encoding: name };
    }
    return this.#read(file);
  }

  /** undefined: there is none. A build that is made while the server runs is served from its end on. */
  async #read(file: string): Promise<Kept | undefined> {
    const stats = await lstat(file).catch(() => undefined);
    if (stats?.isFile() !== true || stats.size > MAX_FILE_BYTES) return undefined;
    const stamp = `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
    const known = this.#kept.get(file);
    if (known?.stamp === stamp) return known;
    const bytes = await readFile(file).catch(() => undefined);
    if (bytes === undefined) return undefined;
    const tag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
    const kept = { bytes, tag, stamp };
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(file, kept);
    return kept;
  }
}

interface Found extends Kept {
  readonly encoding?: string;
}

interface Sent extends Found {
  readonly path: string;
}

function sendFile(
  { method, headers: asked }: IncomingMessage,
  response: ServerResponse,
  { bytes, tag, encoding, path: name }: Sent,
): void {
  const headers = {
    ...PAGE_HEADERS,
    etag: tag,
    vary: "accept-encoding",
    "cache-control": HASHED.test(name) ? "public, max-age=31536000, immutable" : "no-cache",
  };
  if (isKnown(asked["if-none-match"], tag)) {
    response.writeHead(304, headers).end();
    return;
  }
  response.writeHead(200, {
    ...headers,
    "content-type": TYPES[path.posix.extname(name)] ?? "",
    "content-length": bytes.length,
    ...(encoding === undefined ? {} : { "content-encoding": encoding }),
  });
  response.end(method === "HEAD" ? undefined : bytes);
}

function isKnown(shown: string | undefined, tag: string): boolean {
  return shown?.split(",").some((one) => one.trim().replace(/^W\//, "") === tag || one.trim() === "*") === true;
}

/** `gzip;q=0` refuses it. */
function accepts(accepted: string | undefined, name: string): boolean {
  const part = accepted?.split(",").find((one) => one.split(";")[0]?.trim().toLowerCase() === name);
  return part !== undefined && !/;\s*q=0(?:\.0*)?\s*$/.test(part);
}
