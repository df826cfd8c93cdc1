/** Who may come in: logins of browsers by a code, and the tokens of everybody else. */
import {
  Accepted,
  CreatedToken,
  CreateTokenBody,
  DONE,
  EmptyBody,
  LoginAnswer,
  LoginBody,
  LoginCode,
  TokenList,
  TokenParams,
} from "@heddle/protocol/http";
import { defined, HeddleError } from "@heddle/protocol";
import type { Principal } from "../access/principals.ts";
import { route, type Route } from "./route.ts";
import { addBrowser, addToken, BROWSER_IDLE_MS, listBrowsers, listTokens, revokeToken } from "./tokens.ts";

function requirePrincipal(principal: Principal | undefined): Principal {
  if (principal !== undefined) return principal;
  throw new HeddleError("door.unauthorized", "a token is needed");
}

export const LOGIN_ROUTES: readonly Route[] = [
  route({
    name: "login",
    on: "POST /api/login",
    summary:
      "A token for this browser in exchange for a code, which works once; it has the rights of the user of the code",
    scope: "public",
    body: LoginBody,
    answer: LoginAnswer,
    async handle({ body: { code } }, { context: { loginCodes, tokens, home }, headers, response }) {
      const principal = await loginCodes.take(code, response.req.socket.remoteAddress);
      const { token, name } = await addBrowser(home, { ...principal, agent: headers["user-agent"] });
      tokens.changed();
      return { token, name, principal: { name: principal.name, role: principal.role }, idleMs: BROWSER_IDLE_MS };
    },
  }),
  route({
    name: "createLoginCode",
    on: "POST /api/login/codes",
    summary: "A code with which one browser can log in as you within a minute",
    scope: "read",
    body: EmptyBody,
    answer: LoginCode,
    status: 201,
    handle(_given, { context: { loginCodes }, principal }) {
      const { code, expiresAt } = loginCodes.make(requirePrincipal(principal));
      return Promise.resolve({ code, path: `/login#${code}`, expiresAt });
    },
  }),
  route({
    name: "logout",
    on: "POST /api/logout",
    summary: "Ends the login of the browser that calls; its streams end within seconds",
    scope: "read",
    body: EmptyBody,
    answer: Accepted,
    async handle(_given, { context: { home, tokens }, principal }) {
      const { browser, role } = requirePrincipal(principal);
      if (browser === undefined) {
        throw new HeddleError("usage.invalid", "this token is no login of a browser; see heddle token revoke");
      }
      await revokeToken(home, { name: browser, role });
      tokens.changed();
      return DONE;
    },
  }),
  route({
    name: "listTokens",
    on: "GET /api/tokens",
    summary: "Tokens and logins of browsers; never a secret",
    scope: "admin",
    answer: TokenList,
    async handle(_given, { context: { home } }) {
      const tokens = await listTokens(home);
      const browsers = await listBrowsers(home);
      return {
        data: [
          ...tokens.map(({ name, role, createdAt }) => ({ kind: "token" as const, name, role, createdAt })),
          ...browsers.map(({ name, role, of, createdAt, lastUsedAt, agent }) => ({
            kind: "browser" as const,
            name,
            role,
            of,
            createdAt,
            lastUsedAt,
            ...defined({ agent }),
          })),
        ],
      };
    },
  }),
  route({
    name: "createToken",
    on: "POST /api/tokens",
    summary: "A new token, shown this once",
    scope: "admin",
    body: CreateTokenBody,
    answer: CreatedToken,
    status: 201,
    async handle({ body: { name, role } }, { context: { home, tokens } }) {
      const token = await addToken(home, { name, role });
      tokens.changed();
      return { name, role, token };
    },
  }),
  route({
    name: "revokeToken",
    on: "DELETE /api/tokens/{name}",
    summary: "Revokes a token, with the browsers that logged in by it, or ends the login of one browser",
    scope: "admin",
    params: TokenParams,
    answer: Accepted,
    async handle({ params: { name } }, { context: { home, tokens } }) {
      const entries = [...(await listTokens(home)), ...(await listBrowsers(home))];
      const found = entries.find((entry) => entry.name === name);
      if (found === undefined) throw new HeddleError("door.not-found", `there is no token named ${name}`);
      await revokeToken(home, found);
      tokens.changed();
      return DONE;
    },
  }),
];
