/**
 * Whether a request may come in at all: under the server's own name (a page that rebinds a name of its own to this
 * machine calls under that name), from its own origin or from no page, and from whom.
 */
import type { IncomingMessage } from "node:http";
import { HeddleError } from "@heddle/protocol";
import { LOCAL_OWNER, type Principal } from "../access/principals.ts";
import { repeatedHeader, urlOf } from "../transports/server.ts";
import type { Strangers } from "../transports/strangers.ts";
import { WrongTokens } from "../access/wrong-tokens.ts";
import type { TokenBook } from "./tokens.ts";

/** How a connection came. Over a socket file that only its owner can open, the file is the proof. */
export type Entrance =
  | { readonly kind: "private" }
  | {
      readonly kind: "tcp";
      /** `name:port` in lower case. */
      readonly hosts: ReadonlySet<string>;
      /** By which a proxy that users go through is known, besides the server's own. */
      readonly known: { readonly host: string; readonly origin: string } | undefined;
      readonly scheme: "http" | "https";
      readonly strangers: Strangers;
    };

/** `isForPage`: a link elsewhere may lead to the page, which holds nothing before its user logs in. */
export function checkOrigin(request: IncomingMessage, entrance: Entrance, isForPage: boolean): void {
  const { headers } = request;
  const repeated = repeatedHeader(request);
  if (repeated !== undefined) throw new HeddleError("usage.invalid", `the header ${repeated} is given more than once`);
  const { host, origin } = headers;
  const own = entrance.kind === "tcp" ? entrance.hosts : undefined;
  const isPublic = entrance.kind === "tcp" && host?.toLowerCase() === entrance.known?.host && host !== undefined;
  if (own !== undefined && !isPublic && !own.has((host ?? "").toLowerCase())) {
    throw new HeddleError("door.wrong-host", "this server does not answer to that host name");
  }
  const isOwn = origin === undefined || isOwnOrigin(origin, entrance);
  const isLink = isForPage && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
  if (isLink && isOwn) return;
  const site = headers["sec-fetch-site"];
  if (!isOwn || (site !== undefined && site !== "same-origin" && site !== "none")) {
    throw new HeddleError("door.forbidden", "pages of other origins may not call this server");
  }
}

function isOwnOrigin(origin: string, entrance: Entrance): boolean {
  if (entrance.kind === "private") return false;
  if (origin === entrance.known?.origin) return true;
  const scheme = `${entrance.scheme}://`;
  return origin.startsWith(scheme) && entrance.hosts.has(origin.slice(scheme.length));
}

export class Guard {
  readonly #book: TokenBook;
  readonly #wrong = new WrongTokens();

  constructor(book: TokenBook) {
    this.#book = book;
  }

  /** `inQuery`: a client that cannot set headers may show its token as `?token=`. */
  async principalOf(request: IncomingMessage, entrance: Entrance, inQuery: boolean): Promise<Principal> {
    if (entrance.kind === "private") return LOCAL_OWNER;
    const token = bearerOf(request) ?? (inQuery ? queryToken(request) : undefined);
    if (token === undefined) {
      throw new HeddleError("door.unauthorized", "a token is needed: Authorization: Bearer TOKEN");
    }
    const principal = await this.#book.principalOf(token);
    if (principal !== undefined) {
      entrance.strangers.know(request.socket);
      return principal;
    }
    if (this.#wrong.count(request.socket.remoteAddress))
      throw new HeddleError("limit.reached", "too many wrong tokens; wait a minute");
    throw new HeddleError("door.unauthorized", "the token is not valid");
  }

  isStillGood(principal: Principal): Promise<boolean> {
    return principal === LOCAL_OWNER ? Promise.resolve(true) : this.#book.isStillGood(principal);
  }
}

function bearerOf({ headers }: IncomingMessage): string | undefined {
  return /^Bearer +(\S{1,512})$/i.exec(headers.authorization ?? "")?.[1];
}

function queryToken(request: IncomingMessage): string | undefined {
  return urlOf(request)?.searchParams.get("token") ?? undefined;
}
