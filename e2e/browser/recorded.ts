/**
 * Answers that a real server gave once, given again word for word: what a page asks comes out the same every time, so that
 * pictures of it can be compared. What is not recorded is refused and remembered.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { brotliDecompressSync } from "node:zlib";

export interface Recording {
  /** What the clock of the browser says in all pictures. */
  readonly at: number;
  /** By the name of a picture, the address. */
  readonly places: Readonly<Record<string, string>>;
  /** By `GET /path?query`. */
  readonly answers: Readonly<Record<string, unknown>>;
}

export const REFERENCES = path.join(import.meta.dirname, "pictures");
export const RECORDING = path.join(REFERENCES, "answers.json.br");

export function readRecording(): Recording {
  return JSON.parse(brotliDecompressSync(readFileSync(RECORDING)).toString()) as Recording;
}

export interface Recorded extends AsyncDisposable {
  readonly url: string;
  /** What a page asked for that is not recorded. */
  readonly missing: readonly string[];
}

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".html": "text/html",
  ".webmanifest": "application/manifest+json",
};

export async function serveRecorded({ answers }: Recording, page: string): Promise<Recorded> {
  const missing: string[] = [];
  const server = createServer((request, response) => {
    const { method = "", url = "/" } = request;
    const { pathname } = new URL(url, "http://127.0.0.1");
    if (!pathname.startsWith("/api/")) {
      sendFile(page, pathname, response).catch(() => response.destroy());
      return;
    }
    // Nothing happens in a picture: a stream begins, and stays silent.
    if (isStream(pathname)) {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": nothing\n\n");
      return;
    }
    const key = `${method} ${url}`;
    const answer = answers[key];
    if (answer === undefined) missing.push(key);
    response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? { error: { code: "thread.not-found", message: "it is not recorded" } }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    missing,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Where a build has it, from its launcher. */
export function pageOf(launcher: string): string {
  return path.join(path.dirname(launcher), "..", "dist", "dashboard");
}

export function isStream(pathname: string): boolean {
  return pathname.endsWith("/events");
}

async function sendFile(page: string, pathname: string, response: ServerResponse): Promise<void> {
  const ending = path.extname(pathname);
  const name = ending in TYPES ? path.posix.normalize(pathname) : "/index.html";
  const bytes = await readFile(path.join(page, name));
  response.writeHead(200, { "content-type": TYPES[ending] ?? "text/html" }).end(bytes);
}
