/**
 * Whether a request may come in at all: under the server's own name (a page that rebinds a name of its own to this
 * machine calls under that name), from its own origin or from no page, and from whom.
 */
import type { IncomingMessage } from "node:http";
import { HeddleError } from "@heddle/protocol";
import { LOCAL_OWNER, type Principal } from "../principals.ts";
import type { TokenBook } from "./tokens.ts";

/** How a connection came. Over a socket file that only its owner can open, the file is the proof. */
export type Entrance =
  | { readonly kind: "private" }
  | {
      readonly kind: "tcp";
      /** `name:port` in lower case. */
      readonly hosts: ReadonlySet<string>;
    };

export function checkOrigin({ headers }: IncomingMessage, entrance: Entrance): void {
  const { host, origin } = headers;
  const own = entrance.kind === "tcp" ? entrance.hosts : undefined;
  if (own !== undefined && !own.has((host ?? "").toLowerCase())) {
    throw new HeddleError("door.wrong-host", "this server is not known under that name");
  }
  const isOwn =
    origin === undefined || (own?.has(origin.replace(/^http:\/\//, "")) === true && origin.startsWith("http://"));
  const site = headers["sec-fetch-site"];
  if (!isOwn || (site !== undefined && site !== "same-origin" && site !== "none")) {
    throw new HeddleError("door.forbidden", "pages of other origins may not call this server");
  }
}

/** More wrong tokens than this in a minute from one address are no typing mistakes. */
const MAX_WRONG = 20;
const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;

export class Guard {
  readonly #book: TokenBook;
  readonly #wrong = new Map<string, { count: number; readonly since: number }>();

  constructor(book: TokenBook) {
    this.#book = book;
  }

  /** `inQuery`: a client that cannot set headers may show its token as `?token=`. */
  async principalOf(request: IncomingMessage, entrance: Entrance, inQuery: boolean): Promise<Principal> {
    if (entrance.kind === "private") return LOCAL_OWNER;
    const token = bearerOf(request) ?? (inQuery ? queryToken(request) : undefined);
    if (token === undefined) {
      throw new HeddleError("door.unauthorized", "show your token: Authorization: Bearer TOKEN");
    }
    const principal = await this.#book.principalOf(token);
    if (principal !== undefined) return principal;
    const wrong = this.#countWrong(request.socket.remoteAddress ?? "");
    if (wrong > MAX_WRONG) throw new HeddleError("limit.reached", "too many wrong tokens; wait a minute");
    throw new HeddleError("door.unauthorized", "that token is not known here");
  }

  isStillGood(principal: Principal): Promise<boolean> {
    return principal === LOCAL_OWNER ? Promise.resolve(true) : this.#book.isStillGood(principal);
  }

  #countWrong(address: string): number {
    const now = performance.now();
    const known = this.#wrong.get(address);
    if (known !== undefined && now - known.since < WINDOW_MS) return (known.count += 1);
    if (this.#wrong.size >= MAX_ADDRESSES) this.#wrong.clear();
    this.#wrong.set(address, { count: 1, since: now });
    return 1;
  }
}

function bearerOf({ headers }: IncomingMessage): string | undefined {
  return /^Bearer +(\S{1,512})$/i.exec(headers.authorization ?? "")?.[1];
}

function queryToken({ url }: IncomingMessage): string | undefined {
  return new URL(url ?? "/", "http://host").searchParams.get("token") ?? undefined;
}
