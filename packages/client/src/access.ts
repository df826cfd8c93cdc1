/** Who may come in: logins of browsers, tokens. */
import { Http, type Call, type ClientOptions } from "./http.ts";
import type { Accepted, CreatedToken, CreateToken, LoginAnswer, LoginCode, TokenList } from "./types.ts";

/** Without a token: a code, which is used up, becomes one. */
export function login(
  options: Omit<ClientOptions, "token"> & { readonly code: string },
  call?: Call,
): Promise<LoginAnswer> {
  const { code, ...where } = options;
  return new Http(where).json("POST", "api/login", { ...call, body: { code } });
}

export class AccessClient {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** A code with which one browser can log in as you within a minute. */
  createCode(call?: Call): Promise<LoginCode> {
    return this.#http.json("POST", "api/login/codes", { ...call, body: {} });
  }

  /** Of a browser: its token works no longer. */
  logout(call?: Call): Promise<Accepted> {
    return this.#http.json("POST", "api/logout", { ...call, body: {} });
  }

  listTokens(call?: Call): Promise<TokenList> {
    return this.#http.json("GET", "api/tokens", call);
  }

  /** Its token is in this answer alone. */
  createToken(token: CreateToken, call?: Call): Promise<CreatedToken> {
    return this.#http.json("POST", "api/tokens", { ...call, body: token });
  }

  revokeToken(name: string, call?: Call): Promise<Accepted> {
    return this.#http.json("DELETE", `api/tokens/${encodeURIComponent(name)}`, call);
  }
}
