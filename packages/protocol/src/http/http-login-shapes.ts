/** The shapes of who may come in: logins of browsers, tokens. Part of http-shapes.ts, and as strict with requests. */
import { z } from "zod";
import { Id, time } from "./http-parts.ts";

const Role = z.enum(["owner", "user", "viewer"]);

export const LoginBody = z.strictObject({
  code: z.string().min(1).max(200).describe("Of POST /api/login/codes, or after # in the address of heddle dashboard"),
});
export const LoginAnswer = z.object({
  token: z.string().describe("For `Authorization`; it cannot be shown again"),
  name: z.string().describe("By which this browser is listed, and its login is revoked"),
  principal: z.object({ name: z.string(), role: Role }),
  idleMs: z.number().int().describe("Without a request or a stream for so long it has to log in again"),
});
export const LoginCode = z.object({
  code: z.string().describe("Works once"),
  path: z.string().describe("Of the page, with the code; append it to the server's address"),
  expiresAt: time,
});

export const TokenParams = z.strictObject({ name: Id });
export const CreateTokenBody = z.strictObject({
  role: Role,
  name: z.string().min(1).max(64).describe("It is recorded as the author of what its user does"),
});
export const CreatedToken = z.object({ name: z.string(), role: Role, token: z.string().describe("Shown this once") });
export const TokenEntry = z.object({
  kind: z.enum(["token", "browser"]),
  name: z.string(),
  role: Role,
  createdAt: time,
  of: z.string().optional().describe("Of a browser: as whom it acts"),
  lastUsedAt: time.optional().describe("Of a browser, to a few minutes"),
  agent: z.string().optional().describe("What the browser called itself"),
});
export const TokenList = z.object({ data: z.array(TokenEntry) });

export type LoginAnswer = z.output<typeof LoginAnswer>;
export type LoginCode = z.output<typeof LoginCode>;
export type CreateTokenInput = z.input<typeof CreateTokenBody>;
export type CreatedToken = z.output<typeof CreatedToken>;
export type TokenList = z.output<typeof TokenList>;
