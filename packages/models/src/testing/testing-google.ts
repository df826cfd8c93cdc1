/**
 * Google's issuer for tests: checks the RS256 signature and the claims of an assertion, knows the refresh token of one user,
 * and acts as the metadata server.
 */
import { generateKeyPairSync, randomBytes, verify } from "node:crypto";
import { CANARY, send, startTestServer, type TestServer } from "./testing-server.ts";

const METADATA = "/computeMetadata/v1/instance/service-accounts/default/token";

export interface TestGoogle extends TestServer {
  /** As a file of credentials holds it. */
  readonly serviceAccount: Readonly<Record<string, string>>;
  readonly authorizedUser: Readonly<Record<string, string>>;
  /** A key that this issuer does not know. */
  readonly otherKey: string;
  /** Every token that is valid. */
  readonly tokens: Set<string>;
  /** Of tokens from now on. */
  lifetimeSeconds: number;
  /** Statuses of the next answers. */
  readonly faults: number[];
}

export async function startGoogle(): Promise<TestGoogle> {
  const own = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const pem = { type: "pkcs8", format: "pem" } as const;
  const tokens = new Set<string>();
  const faults: number[] = [];
  const person = { client_id: "client-1", client_secret: `secret-${CANARY}`, refresh_token: `refresh-${CANARY}` };
  const server = await startTestServer(({ path, headers, body: form, method }, response) => {
    const fault = faults.shift();
    if (fault !== undefined) return send(response, fault, { error: "unavailable" });
    const grant = (): void => {
      const token = `ya29.${CANARY}-${randomBytes(6).toString("hex")}`;
      tokens.add(token);
      send(response, 200, { access_token: token, expires_in: google.lifetimeSeconds, token_type: "Bearer" });
    };
    if (path === METADATA && headers["metadata-flavor"] === "Google") return grant();
    if (path !== "/token" || method !== "POST") return send(response, 404, { error: "not_found" });
    const isPerson = Object.entries(person).every(([name, value]) => form[name] === value);
    if (form["grant_type"] === "refresh_token" && isPerson) return grant();
    const why = assertionFault(form["assertion"] ?? "", `${server.url}/token`);
    return why === undefined ? grant() : send(response, 400, { error: "invalid_grant", error_description: why });
  });

  function assertionFault(assertion: string, audience: string): string | undefined {
    const [header = "", claims = "", signature = ""] = assertion.split(".");
    const signed = Buffer.from(`${header}.${claims}`);
    if (!verify("RSA-SHA256", signed, own.publicKey, Buffer.from(signature, "base64url"))) return "wrong signature";
    const { alg, kid } = JSON.parse(Buffer.from(header, "base64url").toString()) as Record<string, unknown>;
    const claimed = JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown>;
    const now = Date.now() / 1000;
    const isNow =
      Math.abs(Number(claimed["iat"]) - now) < 60 && Number(claimed["exp"]) - Number(claimed["iat"]) === 3600;
    const isMeant =
      claimed["iss"] === "robot@example.test" &&
      claimed["aud"] === audience &&
      claimed["scope"] === "https://www.googleapis.com/auth/cloud-platform";
    return alg === "RS256" && kid === "kid-1" && isNow && isMeant ? undefined : "wrong claims";
  }

  const google: TestGoogle = {
    ...server,
    serviceAccount: {
      type: "service_account",
      client_email: "robot@example.test",
      private_key: String(own.privateKey.export(pem)),
      private_key_id: "kid-1",
      token_uri: `${server.url}/token`,
    },
    authorizedUser: { type: "authorized_user", ...person, quota_project_id: "quota-1" },
    otherKey: String(other.privateKey.export(pem)),
    tokens,
    lifetimeSeconds: 3600,
    faults,
  };
  return google;
}
