import { createHash, randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { canonical, type EventBody } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { createRedactor, redactText } from "./redact.ts";
import { createStreamRedactor } from "./redact-stream.ts";

const run = (length: number): string => "Q7x".repeat(Math.ceil(length / 3)).slice(0, length);
const pemBody = Array.from({ length: 6 }, () => run(64)).join("\n");
const pem = (kind: string): string => `-----BEGIN ${kind}-----\n${pemBody}\n-----END ${kind}-----`;

function inPieces(text: string, next: () => number, secrets: readonly string[] = []): string {
  const stream = createStreamRedactor(createRedactor(secrets));
  let out = "";
  for (let at = 0; at < text.length;) {
    const size = next();
    out += stream.push(text.slice(at, at + size));
    at += size;
  }
  return out + stream.end();
}

/** Built from pieces, so that scanners of this repository find no secret in it. */
const SECRETS: readonly (readonly [kind: string, secret: string, text?: string])[] = [
  ["openai-key", `sk-${run(48)}`],
  ["openai-key", `sk-proj-${run(40)}_x-${run(20)}`],
  ["anthropic-key", `sk-ant-api03-${run(80)}`],
  ["github-token", `ghp_${run(36)}`],
  ["github-token", `github_pat_${run(22)}_${run(50)}`],
  ["aws-key", `AKIA${"Q7XZ".repeat(4)}`],
  ["google-key", `AIza${run(35)}`],
  ["slack-token", `xoxb-${run(12)}-${run(24)}`],
  ["jwt", `eyJ${run(20)}.eyJ${run(40)}.${run(43)}`],
  ["private-key", pem("RSA PRIVATE KEY")],
  ["private-key", pem("OPENSSH PRIVATE KEY")],
  ["url-password", "s3cr3t-w0rd", "postgres://app:s3cr3t-w0rd@db.local:5432/app"],
  ["bearer-token", run(40), `Bearer ${run(40)}`],
  ["authorization", "dXNlcjpwYXNz", "Authorization: Basic dXNlcjpwYXNz"],
  ["authorization", run(32), `{"authorization": "Bearer ${run(32)}"}`],
  ["webhook-secret", `whsec_${run(32)}`],
];

describe("known formats", () => {
  test.each(SECRETS)("%s (%#) is marked by its kind and gone", (kind, secret, text = secret) => {
    const redacted = redactText(`before ${text}, after`);
    expect(redacted).not.toContain(secret);
    expect(redacted).toContain(`[redacted:${kind}]`);
    expect(redacted).toMatch(/^before /);
    expect(redacted).toMatch(/, after$/);
    expect(redactText(redacted)).toBe(redacted);
  });

  test.each(SECRETS)(
    "%s (%#) is found in quotes, in JSON inside a string, and at a line's start",
    (_kind, secret, text = secret) => {
      for (const wrapped of [
        `x="${text}"`,
        JSON.stringify(JSON.stringify({ k: text })),
        `a\n${text}\nb`,
        `(${text})`,
      ]) {
        expect(redactText(wrapped)).not.toContain(secret);
        expect(redactText(wrapped)).not.toContain(JSON.stringify(secret).slice(1, -1));
      }
    },
  );

  test("a key block without its end loses its lines all the same", () => {
    const cut = `-----BEGIN PRIVATE KEY-----\n${pemBody}\n${run(30)}`;
    expect(redactText(`cat key\n${cut}`)).toBe("cat key\n[redacted:private-key]");
  });

  test("only the password of a URL goes", () => {
    expect(redactText("postgres://app:hunter2hunter2@db:5432/x")).toBe(
      "postgres://app:[redacted:url-password]@db:5432/x",
    );
  });
});

describe("12.12: what stands around a secret", () => {
  const AROUND: readonly (readonly [string, (token: string) => string])[] = [
    ["a colour code", (token) => `\u001B[1;31m${token}\u001B[0m`],
    ["a colour code inside", (token) => `\u001B[31m\u001B[K${token.slice(0, 4)}\u001B[m\u001B[K${token.slice(4)}`],
    ["a character set", (token) => `\u001B(B${token}`],
    ["an escape of one letter", (token) => `\u001Bc${token}`],
    ["a colour code in JSON", (token) => JSON.stringify(`\u001B[31m${token}`)],
    ["a colour code as a shell writes it", (token) => `\\033[0;32m${token}`],
    ["a line end in JSON", (token) => JSON.stringify(`a\n${token}\nb`)],
    ["a line end in JSON inside JSON", (token) => JSON.stringify(JSON.stringify(`a\n${token}`))],
    ["a tab as a code", (token) => `\\u0009${token} \\x09${token}`],
    ["an encoded equals sign", (token) => `token%3D${token}%26a%3Db`],
    ["one encoded twice", (token) => `token%253d${token}`],
    ["quoted-printable", (token) => `token=3D${token}`],
  ];
  const words = SECRETS.filter(([, secret, text]) => text === undefined && !secret.includes("\n")).map(
    ([kind, secret]) => [kind, secret] as const,
  );
  for (const [name, wrap] of AROUND) {
    test.each(words)(`${name}: %s (%#)`, (kind, secret) => {
      const text = `x ${wrap(secret)} y`;
      const redacted = redactText(text);
      expect(redacted).not.toContain(secret.slice(5));
      expect(redacted).toContain(`[redacted:${kind}]`);
      expect(redactText(redacted)).toBe(redacted);
      for (const size of [1, 3, 10]) expect(inPieces(text, () => size)).toBe(redacted);
    });
  }

  test.each([
    ["two tokens", `ghp_${run(30)}\u001B[0m\u001B[31mghp_${run(36)}x`],
    ["a token and a header", `xoxb-${run(20)}\u001B[0mAuthorization: Basic ${run(20)}x`],
    ["a secret and a key block", `whsec_${run(30)}\u001B[1m${pem("RSA PRIVATE KEY")}`],
    ["a cut key block and a header", `-----BEGIN PRIVATE KEY-----\n${run(60)}\nBearer ${run(20)}~${run(20)}x`],
  ])("%s with only a colour or a line end between them both go", (_name, text) => {
    const redacted = redactText(`see ${text}, end`);
    expect(redacted).toMatch(/^see \[redacted:[a-z-]+\].{0,40}, end$/);
    expect(redacted).not.toContain("Q7x");
    for (const size of [1, 3, 10, 64]) expect(inPieces(`see ${text}, end`, () => size)).toBe(redacted);
  });

  test("headers, addresses and keys that are percent-encoded", () => {
    const header = "Authorization: Basic dXNlcjpwYXNzd29yZA==";
    const address = "postgres://app:s3cr3t-w0rd@db.local/x";
    const all = [header, `bearer ${run(30)}`, address, pem("RSA PRIVATE KEY")];
    const redacted = all.map((text) => redactText(`q=${encodeURIComponent(text)}&z=1`));
    expect(redacted).toEqual([
      "q=Authorization%3A%20Basic%20[redacted:authorization]",
      "q=bearer%20[redacted:bearer-token]&z=1",
      "q=postgres%3A%2F%2Fapp%3A[redacted:url-password]%40db.local%2Fx&z=1",
      "q=[redacted:private-key]&z=1",
    ]);
  });
});

describe("12.12: a known value in other forms", () => {
  const key = "kn0wn/secret+value of ümlauts 0123456789-abcdefghij";
  const bytes = Buffer.from(key);
  const hex = bytes.toString("hex");
  const base64 = (lead: string, alphabet: "base64" | "base64url"): string =>
    Buffer.from(`${lead}${key} and more`).toString(alphabet);
  const FORMS: readonly (readonly [string, string])[] = [
    ["as it is", key],
    ["in JSON", JSON.stringify(`"${key}`)],
    ["in hexadecimal", hex],
    ["in upper hexadecimal", hex.toUpperCase()],
    ["percent-encoded", encodeURIComponent(key)],
    ["percent-encoded in lower case", encodeURIComponent(key).replaceAll(/%../g, (code) => code.toLowerCase())],
    ["every character percent-encoded", hex.replaceAll(/../g, "%$&")],
    ["with a colour inside", `${key.slice(0, 9)}\u001B[31m${key.slice(9)}`],
    ...["", "x", "xy"].flatMap((lead): [string, string][] => [
      [`in base64 after ${lead.length}`, base64(lead, "base64")],
      [`in base64url after ${lead.length}`, base64(lead, "base64url")],
    ]),
  ];
  test.each(FORMS)("%s", (_name, form) => {
    const text = `begin ${form}; end`;
    const redactor = createRedactor([key]);
    const redacted = redactor.text(text);
    expect(redacted).toContain("[redacted:known-secret]");
    expect(redacted).toMatch(/^begin .{0,80}; end$/);
    for (let at = 0; at + 12 <= hex.length; at += 2) expect(redacted).not.toContain(hex.slice(at, at + 12));
    const decoded = Buffer.from(redacted.replaceAll(/begin |\[redacted:[^\]]*\]|; end/g, ""), "base64").toString(
      "latin1",
    );
    for (let at = 0; at + 4 <= key.length; at += 1) expect(decoded).not.toContain(key.slice(at, at + 4));
    for (const size of [1, 2, 5, 17, 64]) expect(inPieces(text, () => size, [key])).toBe(redacted);
    expect(JSON.stringify(redactor.body({ words: text }, JSON.stringify({ words: text })))).toBe(
      JSON.stringify({ words: redacted }),
    );
  });

  test("in base64 that is broken into lines, all but less than a line", () => {
    const long = run(300).replaceAll("Q7x", () => randomBytes(3).toString("base64url").slice(0, 3));
    const lines = Buffer.from(`some text before ${long}`).toString("base64").replaceAll(/.{76}/g, "$&\n");
    const redacted = createRedactor([long]).text(lines);
    expect(redacted.replaceAll("[redacted:known-secret]", "").length).toBeLessThan(60);
  });
});

describe("what is no secret stays as it is", () => {
  const ordinary = [
    "the task-list and the disk-usage of sk-spinner-wandering-cubes",
    "basic authentication uses a bearer capability; Authorization: see below",
    "http://localhost:3000/@scope/pkg and git@github.com:o/r.git and http://[::1]:8080/",
    "postgres://user:${PASSWORD}@localhost and mysql://u:<password>@h",
    "AKIA is a prefix, AIza too, ghp_ and xoxb- as well",
    "-----BEGIN CERTIFICATE-----",
    "const KEY = /-----BEGIN PRIVATE KEY-----/;",
    "eyJhbGciOiJIUzI1NiJ9 alone is only a header",
  ];
  test.each(ordinary)("%s", (text) => {
    expect(redactText(text)).toBe(text);
  });

  test("hashes, UUIDs and base64 of any content survive", () => {
    for (let seed = 0; seed < 400; seed += 1) {
      const bytes = createHash("sha512").update(`seed ${seed}`).digest();
      const text = [
        bytes.toString("hex").slice(0, 40),
        randomUUID(),
        `"integrity": "sha512-${bytes.toString("base64")}"`,
        `data:image/png;base64,${createHash("sha512").update(bytes).digest("base64").repeat(8)}`,
        randomBytes(600).toString("base64"),
        randomBytes(32).toString("base64url"),
      ].join("\n");
      expect(redactText(text)).toBe(text);
    }
  });

  test("the lockfile of this repository survives", () => {
    const lock = readFileSync(new URL("../../../../package-lock.json", import.meta.url), "utf8");
    expect(redactText(lock)).toBe(lock);
  });
});

describe("bodies", () => {
  const token = `ghp_${run(36)}`;
  const redact = (body: EventBody, secrets: readonly string[] = []): EventBody =>
    createRedactor(secrets).body(body, canonical(body));

  test("a body without secrets is the same object", () => {
    const body: EventBody = { type: "thread.created", v: 1, workspace: "/w", origin: "exec" };
    expect(redact(body)).toBe(body);
  });

  test("every string at any depth is redacted", () => {
    const body = redact({
      type: "tool.intended",
      v: 1,
      turnId: "t",
      callId: "c",
      itemId: "i",
      tool: "x",
      arguments: { list: [{ env: { [token]: `token ${token}` } }], base64: token, opaque: { wire: "w", data: token } },
      isReadOnly: true,
    });
    expect(JSON.stringify(body)).not.toContain(token);
  });

  test("the bytes of an image survive, text beside it does not", () => {
    const base64 = `iVBORw0KGgo/AKIA${"Q7XZ".repeat(4)}/`;
    const body = redact({
      type: "turn.steered",
      v: 1,
      turnId: "t",
      input: [
        { type: "image", mediaType: "image/png", base64 },
        { type: "text", text: token },
      ],
    });
    expect(body).toMatchObject({ input: [{ base64 }, { text: "[redacted:github-token]" }] });
  });

  test("a registered value is found also where JSON escapes it", () => {
    const odd = 'pa"ss\\word-1';
    expect(
      JSON.stringify(
        redact(
          { type: "turn.interrupt-requested", v: 1, turnId: "t", failure: { code: "x", message: `it is ${odd}.` } },
          [odd],
        ),
      ),
    ).toContain("it is [redacted:known-secret].");
  });

  test("a registered value too short to be a secret changes nothing", () => {
    expect(createRedactor(["abc", ""]).text("abc abcdef")).toBe("abc abcdef");
  });
});

describe("text in pieces", () => {
  const texts = SECRETS.map(
    ([, secret, text = secret]) => `see:\n${text}\nand ${text}; x${text} then Bearer of news, ${text}.`,
  );

  test.each(texts)("comes out as if it were whole, however it is cut (%#)", (text) => {
    const whole = redactText(text);
    for (const size of [1, 2, 3, 7, 16, 64]) expect(inPieces(text, () => size)).toBe(whole);
    for (let cut = 0; cut <= text.length; cut += 1) {
      let pushes = 0;
      expect(inPieces(text, () => (pushes++ === 0 ? cut || 1 : text.length))).toBe(whole);
    }
  });

  test("a registered value cut in two is found", () => {
    expect(inPieces("key=abcdefgh12 end", () => 5, ["abcdefgh12"])).toBe("key=[redacted:known-secret] end");
  });

  test("ordinary words come out at once, and as soon as they end where an encoded value could begin with them", () => {
    const stream = createStreamRedactor();
    expect(stream.push("The quick bro")).toBe("The quick bro");
    const wary = createStreamRedactor(createRedactor(["known-value-0123456789"]));
    expect(wary.push("The quick bro")).toBe("The quick ");
    expect(wary.push("wn fox ")).toBe("brown fox ");
    expect(wary.end()).toBe("");
  });

  test("an endless word is held back up to a bound and comes out unchanged", () => {
    const stream = createStreamRedactor();
    const chunk = randomBytes(3 * 1024).toString("base64");
    let [pushed, out, most] = ["", "", 0];
    for (let count = 0; count < 64; count += 1) {
      pushed += chunk;
      out += stream.push(chunk);
      most = Math.max(most, pushed.length - out.length);
    }
    expect(out + stream.end()).toBe(pushed);
    expect(most).toBeLessThan(32 * 1024);
  });

  test("a secret at the end of an endless word is found, also across pieces", () => {
    const text = `${"A+".repeat(40_000)}/ghp_${run(36)}/${"B".repeat(30_000)}`;
    const out = inPieces(text, () => 1000);
    expect(out).toContain("[redacted:github-token]");
    expect(out).not.toContain(run(36));
  });
});

test("a value learned later is a secret from then on, also where it was met before", () => {
  const redactor = createRedactor(["first-known-value"]);
  const stream = createStreamRedactor(redactor);
  const body = { words: "plain-later-value and first-known-value" };
  expect(redactor.body(body, JSON.stringify(body)).words).toBe("plain-later-value and [redacted:known-secret]");
  redactor.learn(["plain-later-value", "short"]);
  expect(redactor.body(body, JSON.stringify(body)).words).toBe("[redacted:known-secret] and [redacted:known-secret]");
  expect(redactor.text("short")).toBe("short");
  expect(stream.push("it is plain-later-value\n") + stream.end()).toBe("it is [redacted:known-secret]\n");
});
