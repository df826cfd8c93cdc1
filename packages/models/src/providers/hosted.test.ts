import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { CANARY } from "../auth/testing.ts";
import { openAccounts } from "../auth/accounts.ts";
import { resolveProvider, type Provider, type ProviderConfig } from "./providers.ts";
import {
  awsRefusal,
  startGoogle,
  startModelServer,
  type AwsJudge,
  type Fault,
  type RecordedRequest,
} from "../testing/testing.ts";
import { collect, completedOf, sampleRequest } from "../testing/testing-requests.ts";

type Environment = Readonly<Record<string, string>>;

interface Fixture extends AsyncDisposable {
  readonly root: string;
  file(name: string, content: unknown): Promise<string>;
  /** As a run gets it: with what the machine has. */
  provider(config: ProviderConfig, env?: Environment): Promise<Provider>;
}

async function openFixture(): Promise<Fixture> {
  const root = await mkdtemp(path.join(tmpdir(), "heddle-hosted-"));
  return {
    root,
    async file(name, content) {
      const file = path.join(root, name);
      await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
      return file;
    },
    async provider(config, env = {}) {
      const all = { HOME: root, ...env };
      const fast = { ...config, retryBaseMs: 1 };
      await using accounts = openAccounts({ home: path.join(root, "home"), env: all, configs: [fast] });
      return resolveProvider([{ ...fast, ...(await accounts.provide(config.id)) }], config.id, all);
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

function refuse(status: number, message: string): Fault {
  return { kind: "status", status, body: { message } };
}

const TEXT = [{ kind: "text", text: "hello from the cloud" }];
const SCRIPT = [{ text: "hello from the cloud" }];

describe("12.19: Vertex AI", () => {
  const bearer = (tokens: ReadonlySet<string>) => (request: RecordedRequest) =>
    tokens.has(String(request.headers.authorization).slice("Bearer ".length)) ? undefined : refuse(401, "no token");
  const at = (url: string, publisher: string) => `${url}/v1/projects/p/locations/l/publishers/${publisher}`;

  test("a service account's assertion is signed, exchanged once, and taken", async () => {
    await using google = await startGoogle();
    await using server = await startModelServer({ script: SCRIPT, faults: bearer(google.tokens) });
    await using fixture = await openFixture();
    const credentialsFile = await fixture.file("robot.json", google.serviceAccount);
    const auth = { type: "vertex", credentialsFile } as const;
    const provider = await fixture.provider({ id: "vertex", baseUrl: at(server.url, "google"), auth });
    for (const _turn of [1, 2]) {
      const outcome = await collect(provider, sampleRequest({ model: "gemini-3.8-flash" }));
      expect(completedOf(outcome).output).toMatchObject(TEXT);
    }
    expect(server.requests.map((request) => request.path)).toEqual(
      Array.from(
        { length: 2 },
        () => "/v1/projects/p/locations/l/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
      ),
    );
    expect(google.count("/token")).toBe(1);
  });

  test("Claude is asked with its version in the body and its model in the path", async () => {
    await using google = await startGoogle();
    await using server = await startModelServer({ script: SCRIPT, faults: bearer(google.tokens) });
    await using fixture = await openFixture();
    const credentialsFile = await fixture.file("adc.json", google.authorizedUser);
    const auth = { type: "vertex", tokenUrl: `${google.url}/token`, credentialsFile } as const;
    const provider = await fixture.provider({ id: "vertex-anthropic", baseUrl: at(server.url, "anthropic"), auth });
    const outcome = await collect(provider, sampleRequest({ model: "claude-sonnet-4-5@20250929" }));
    expect(completedOf(outcome).output).toMatchObject(TEXT);
    const [request] = server.requests;
    expect(request?.path).toBe(
      "/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5%4020250929:streamRawPredict",
    );
    expect(request?.body).toMatchObject({ anthropic_version: "vertex-2023-10-16", stream: true });
    expect(request?.body).not.toHaveProperty("model");
    expect(request?.headers).toMatchObject({ "x-goog-user-project": "quota-1" });
    expect(request?.headers).not.toHaveProperty("anthropic-version");
  });

  test("a token that ends, or is refused before its time, is fetched anew in the middle of a run", async () => {
    await using google = await startGoogle();
    await using server = await startModelServer({ script: SCRIPT, faults: bearer(google.tokens) });
    await using fixture = await openFixture();
    const credentialsFile = await fixture.file("robot.json", google.serviceAccount);
    const auth = { type: "vertex", credentialsFile } as const;
    const provider = await fixture.provider({ id: "vertex", baseUrl: at(server.url, "google"), auth });
    const ask = async () => completedOf(await collect(provider, sampleRequest({ model: "gemini-3.8-flash" })));
    google.lifetimeSeconds = 0.001;
    await ask();
    google.lifetimeSeconds = 3600;
    await ask();
    expect(google.count("/token")).toBe(2);
    google.tokens.clear();
    await Promise.all([ask(), ask(), ask()]);
    expect(google.count("/token")).toBe(3);
    const shown = provider.redact(server.requests.map(({ headers }) => headers.authorization).join(" "));
    expect(shown).not.toContain(CANARY);
  });

  test("an issuer that is down for a moment is asked again, and a refusal says what to do", async () => {
    await using google = await startGoogle();
    await using fixture = await openFixture();
    const wrong = await fixture.file("wrong.json", { ...google.serviceAccount, private_key: google.otherKey });
    const config = { id: "vertex", baseUrl: at("http://127.0.0.1:1", "google") };
    google.faults.push(503);
    const provider = await fixture.provider({ ...config, auth: { type: "vertex", credentialsFile: wrong } });
    const { error } = await collect(provider);
    expect(google.count("/token")).toBe(2);
    expect(error).toMatchObject({
      code: "auth.rejected",
      message: expect.stringContaining("gcloud auth application-default login"),
    });
    expect(error?.message).not.toContain(CANARY);
  });

  test("the machine's own account is asked for only where the configuration says so", async () => {
    await using google = await startGoogle();
    await using server = await startModelServer({ script: SCRIPT, faults: bearer(google.tokens) });
    await using fixture = await openFixture();
    const env = { GCE_METADATA_HOST: new URL(google.url).host };
    const config = { id: "vertex", baseUrl: at(server.url, "google") };
    await expect(fixture.provider(config, env)).rejects.toMatchObject({
      code: "auth.missing",
      message: expect.stringContaining("run: gcloud auth application-default login"),
    });
    expect(google.requests).toHaveLength(0);
    const provider = await fixture.provider({ ...config, auth: { type: "vertex", metadata: true } }, env);
    expect(completedOf(await collect(provider)).output).toMatchObject(TEXT);
  });

  test.each([
    [
      { type: "external_account", audience: "x" },
      /kind external_account, which Heddle does not exchange.*print-access-token/,
    ],
    [{ type: "impersonated_service_account" }, /kind impersonated_service_account/],
    [{ type: "authorized_user", refresh_token: CANARY }, /does not hold Google credentials/],
    [`{"type": "${CANARY}`, /does not hold Google credentials/],
  ])("credentials of another kind are refused by name: %j", async (content, why) => {
    await using fixture = await openFixture();
    const file = await fixture.file("adc.json", content);
    const config = { id: "vertex", baseUrl: "http://127.0.0.1:1" };
    const failed = await fixture
      .provider(config, { GOOGLE_APPLICATION_CREDENTIALS: file })
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: "auth.missing", message: expect.stringMatching(why) });
    expect(String(failed)).not.toContain(CANARY);
  });

  test.each([
    [
      { GOOGLE_CLOUD_PROJECT: "p-1" },
      "gemini",
      "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/google",
    ],
    [
      { GOOGLE_CLOUD_PROJECT: "p-1", GOOGLE_CLOUD_LOCATION: "us-east5" },
      "anthropic",
      "https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/publishers/anthropic",
    ],
    [
      { GOOGLE_CLOUD_PROJECT: "p-1", CLOUD_ML_REGION: "eu" },
      "gemini",
      "https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu/publishers/google",
    ],
  ] as const)("its address comes from %j", (env, wire, url) => {
    const credential = { source: "x", headers: async () => ({}), renew: async () => false, secrets: () => [] };
    expect(resolveProvider([{ id: "vertex", wire, credential }], "vertex", env).baseUrl).toBe(url);
    expect(() => resolveProvider([{ id: "vertex", credential }], "vertex", {})).toThrow(
      /needs a project: set GOOGLE_CLOUD_PROJECT/,
    );
    const evil = { ...env, GOOGLE_CLOUD_PROJECT: "p/../../../evil" };
    expect(() => resolveProvider([{ id: "vertex", credential }], "vertex", evil)).toThrow(
      /is not the name of a project/,
    );
  });
});

describe("12.19: Bedrock", () => {
  const JUDGE: AwsJudge = {
    accessKeyId: "AKIDTEST",
    secretAccessKey: `${CANARY}/+secret`,
    sessionToken: `session-${CANARY}==`,
    region: "eu-west-3",
  };
  const judged = (judge: AwsJudge) => (request: RecordedRequest) => {
    const why = awsRefusal(request, judge);
    return why === undefined ? undefined : refuse(403, why);
  };
  const ENV = {
    AWS_ACCESS_KEY_ID: JUDGE.accessKeyId,
    AWS_SECRET_ACCESS_KEY: JUDGE.secretAccessKey,
    AWS_SESSION_TOKEN: JUDGE.sessionToken ?? "",
    AWS_REGION: JUDGE.region,
  };
  const MODEL = "arn:aws:bedrock:eu-west-3:1:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0";

  test("a request is signed over its path and body, and its frames are read", async () => {
    await using server = await startModelServer({
      script: [{ text: "ä€ hello", calls: [{ tool: "exec_command", args: { cmd: "ls" } }] }],
      faults: judged(JUDGE),
    });
    await using fixture = await openFixture();
    const provider = await fixture.provider({ id: "bedrock", baseUrl: server.url }, ENV);
    const done = completedOf(await collect(provider, sampleRequest({ model: MODEL })));
    expect(done.output).toMatchObject([
      { kind: "text", text: "ä€ hello" },
      { kind: "toolCall", name: "exec_command" },
    ]);
    const [request] = server.requests;
    expect(request?.path).toBe(`/model/${encodeURIComponent(MODEL)}/invoke-with-response-stream`);
    expect(request?.headers).toMatchObject({ accept: "application/vnd.amazon.eventstream" });
    expect(request?.body).toMatchObject({ anthropic_version: "bedrock-2023-05-31" });
    expect(Object.keys(request?.body ?? {})).not.toEqual(expect.arrayContaining(["model", "stream"]));
  });

  test.each([
    ["another secret", { ...JUDGE, secretAccessKey: "other" }],
    ["another region", { ...JUDGE, region: "us-east-1" }],
    ["another session", { ...JUDGE, sessionToken: "other" }],
  ])("a signature with %s is refused, and nothing of it is told", async (_what, judge) => {
    await using server = await startModelServer({ script: SCRIPT, faults: judged(judge) });
    await using fixture = await openFixture();
    const provider = await fixture.provider({ id: "bedrock", baseUrl: server.url }, ENV);
    const { error } = await collect(provider, sampleRequest({ model: MODEL }));
    expect(error).toMatchObject({ code: "auth.rejected" });
    expect(JSON.stringify([error?.message, error?.details])).not.toContain(CANARY);
    expect(server.requests).toHaveLength(1);
  });

  test("a profile of the shared file is read anew for each request; one that leads elsewhere is refused by name", async () => {
    const judge: AwsJudge = { accessKeyId: "AKIDFILE", secretAccessKey: "second", region: "us-east-1" };
    await using server = await startModelServer({ script: SCRIPT, faults: judged(judge) });
    await using fixture = await openFixture();
    const section = (secret: string) =>
      `# keys\n[default]\naws_access_key_id=NO\naws_secret_access_key=NO\n\n[work]\naws_access_key_id = AKIDFILE\naws_secret_access_key = ${secret}\n`;
    const credentialsFile = await fixture.file("credentials", section("first"));
    const auth = { type: "bedrock", region: "us-east-1", profile: "work", credentialsFile } as const;
    const provider = await fixture.provider({ id: "bedrock", baseUrl: server.url, auth }, ENV);
    expect((await collect(provider)).error).toMatchObject({ code: "auth.rejected" });
    await fixture.file("credentials", section("second"));
    expect(completedOf(await collect(provider)).output).toMatchObject(TEXT);
    const config = await fixture.file("config", "[profile sso]\nsso_session = x\nregion = us-east-1\n");
    const other = { id: "bedrock", baseUrl: server.url, auth: { ...auth, profile: "sso" } };
    await expect(fixture.provider(other, { AWS_CONFIG_FILE: config })).rejects.toMatchObject({
      code: "auth.missing",
      message: expect.stringMatching(/leads to sso_session; set AWS_ACCESS_KEY_ID.*export-credentials/),
    });
  });

  test("a key for Bedrock is sent as it is, and its OpenAI-compatible address takes signatures too", async () => {
    await using server = await startModelServer({
      script: SCRIPT,
      faults: (request) => (request.wire === "openai-chat" ? judged(JUDGE)(request) : undefined),
    });
    await using fixture = await openFixture();
    const keyed = resolveProvider([{ id: "bedrock", baseUrl: server.url }], "bedrock", {
      AWS_BEARER_TOKEN_BEDROCK: "bedrock-key",
    });
    expect(completedOf(await collect(keyed)).output).toMatchObject(TEXT);
    expect(server.requests[0]?.headers.authorization).toBe("Bearer bedrock-key");
    const chat = await fixture.provider(
      { id: "bedrock", wire: "openai-chat", baseUrl: `${server.url}/openai/v1` },
      ENV,
    );
    expect(completedOf(await collect(chat)).output).toMatchObject(TEXT);
    const url = (wire: "anthropic" | "openai-chat") =>
      resolveProvider([{ id: "bedrock", wire }], "bedrock", { AWS_BEARER_TOKEN_BEDROCK: "k", AWS_REGION: "us-east-1" })
        .baseUrl;
    expect([url("anthropic"), url("openai-chat")]).toEqual([
      "https://bedrock-runtime.us-east-1.amazonaws.com",
      "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
    ]);
    expect(() => resolveProvider([], "bedrock", { AWS_BEARER_TOKEN_BEDROCK: "k" })).toThrow(
      /needs a region: set AWS_REGION/,
    );
  });
});

describe("12.19: Azure OpenAI", () => {
  test("takes its key in its own header, at both styles of address", async () => {
    await using server = await startModelServer({ script: SCRIPT });
    const env = { AZURE_OPENAI_API_KEY: `azure-${CANARY}` };
    const request = sampleRequest({ model: "my gpt/5" });
    const styles: readonly ProviderConfig[] = [
      { id: "azure", baseUrl: `${server.url}/openai/v1` },
      {
        id: "azure",
        wire: "openai-chat",
        baseUrl: `${server.url}/openai/deployments/{model}`,
        query: { "api-version": "2026-01-01" },
      },
    ];
    for (const config of styles) completedOf(await collect(resolveProvider([config], "azure", env), request));
    expect(server.requests.map(({ path, headers }) => [path, headers["api-key"], headers.authorization])).toEqual([
      ["/openai/v1/responses", `azure-${CANARY}`, undefined],
      ["/openai/deployments/my%20gpt%2F5/chat/completions?api-version=2026-01-01", `azure-${CANARY}`, undefined],
    ]);
    const { error } = await collect(resolveProvider(styles.slice(1), "azure", env), sampleRequest({ model: ".." }));
    expect(error).toMatchObject({ code: "model.unknown" });
  });

  test("lists no models where its address is that of one, and nobody is asked for them", async () => {
    await using server = await startModelServer({ script: SCRIPT });
    await using fixture = await openFixture();
    const configs = [
      { id: "azure", wire: "openai-chat", baseUrl: `${server.url}/openai/deployments/{model}` },
    ] as const;
    const env = { AZURE_OPENAI_API_KEY: "k", AWS_BEARER_TOKEN_BEDROCK: "k", AWS_REGION: "us-east-1" };
    await using accounts = openAccounts({ home: path.join(fixture.root, "home"), env, configs });
    for (const provider of ["azure", "bedrock"])
      expect(await accounts.models({ provider })).toMatchObject([
        { provider, isLoggedIn: true, isStale: false, models: [] },
      ]);
  });

  test("with a token command sends no key, whatever the environment holds, and no token in the clear", async () => {
    const auth = { type: "command", command: ["true"] } as const;
    const credential = { source: "x", headers: async () => ({}), renew: async () => false, secrets: () => [] };
    const config = { id: "azure", auth, credential, baseUrl: "https://x.openai.azure.com/openai/v1" };
    expect(resolveProvider([config], "azure", { AZURE_OPENAI_API_KEY: "k" }).headers()).toEqual({});
    const open = { ...config, baseUrl: "http://x.openai.azure.com/openai/v1" };
    expect(() => resolveProvider([open], "azure", {})).toThrow(/only to https/);
  });
});
