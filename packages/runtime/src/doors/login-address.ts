/** An address of the dashboard of a running server with a code in it, which logs one browser in as the owner. */
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { LoginCode } from "@heddle/protocol/http";
import { ownerTokenPath } from "@heddle/server/http";
import { isServing, servedAddresses, urlOf } from "./address-file.ts";

export interface LoginAddress {
  readonly url: string;
  /** Of the page, without the code. */
  readonly page: string;
  readonly expiresAt: number;
}

const WAIT_MS = 10_000;
const MAX_ANSWER_CHARS = 64 * 1024;

export async function loginAddress(home: string): Promise<LoginAddress> {
  const addresses = await servedAddresses(home);
  const page = urlOf(addresses);
  if (page === undefined) throw new HeddleError("usage.invalid", noServer(home, addresses));
  const way = await wayTo(home, addresses);
  const { status } = await ask(home, way, { method: "GET", path: "/" });
  if (status === 503)
    throw new HeddleError("usage.invalid", "the dashboard is not built; build it with: npm run build");
  if (status !== 200) {
    throw new HeddleError("usage.invalid", `${page} serves no dashboard; start it without --no-ui: heddle serve`);
  }
  const answer = await ask(home, way, { method: "POST", path: "/api/login/codes" });
  const code = LoginCode.safeParse(answer.json);
  if (!code.success) {
    throw new HeddleError("usage.invalid", `${page} gave no code for logging in (HTTP ${answer.status})`);
  }
  return { url: `${page}${code.data.path}`, page: `${page}/`, expiresAt: code.data.expiresAt };
}

function noServer(home: string, addresses: readonly string[]): string {
  return addresses.length === 0
    ? `no server runs on ${home}; start one with: heddle serve`
    : "the server listens on no address for browsers; start it with: heddle serve --listen http://127.0.0.1:4617";
}

interface Way {
  readonly socketPath?: string;
  readonly host?: string;
  readonly port?: number;
  readonly token?: string;
}

/** The socket, which proves who asks; else in the clear on this machine, with the owner's token. */
async function wayTo(home: string, addresses: readonly string[]): Promise<Way> {
  const socket = addresses.find((address) => address.startsWith("unix://"));
  if (socket !== undefined) return { socketPath: socket.slice("unix://".length) };
  const plain = addresses.find((address) => address.startsWith("http://"));
  if (plain === undefined) {
    throw new HeddleError("usage.invalid", "the server has no private socket; start it with --listen unix:// too");
  }
  // The token is for nobody else who listens there after a crash.
  if (!(await isServing(home))) throw new HeddleError("usage.invalid", noServer(home, []));
  const { hostname, port } = new URL(plain);
  const token = (await readFile(ownerTokenPath(home), "utf8")).trim();
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port), token };
}

interface Answered {
  readonly status: number;
  readonly json: unknown;
}

async function ask(
  home: string,
  { token, ...way }: Way,
  { method, path }: { readonly method: string; readonly path: string },
): Promise<Answered> {
  const headers = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(method === "POST" ? { "content-type": "application/json" } : {}),
  };
  try {
    return await new Promise<Answered>((resolve, reject) => {
      const signal = AbortSignal.timeout(WAIT_MS);
      const sent = request({ ...way, method, path, headers, signal, agent: false }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          if (text.length < MAX_ANSWER_CHARS) text += part;
        });
        response.on("error", reject).on("end", () => {
          const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
          resolve({ status: response.statusCode ?? 0, json: isJson ? jsonOf(text) : undefined });
        });
      });
      sent.on("error", reject).end();
    });
  } catch (cause) {
    const why = `cannot reach the server of ${home} (${reasonOf(cause)})`;
    throw new HeddleError("usage.invalid", `${why}; start one with: heddle serve`, { cause });
  }
}

/** What is no JSON has no code in it, which is said with the status. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
