import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { awsCredentials } from "./aws-credentials.ts";

async function read(text: string, profile: string) {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-aws-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const credentialsFile = path.join(folder, "credentials");
  await writeFile(credentialsFile, text);
  return awsCredentials({ type: "bedrock", region: "eu-central-1", profile, credentialsFile }, { HOME: folder });
}

const KEYS = "aws_access_key_id=AKID\naws_secret_access_key = secret/1=\n";

test("12.19: sections and keys are read as AWS's programs write them", async () => {
  const text = `# [mine]\r\n[other]\r\naws_access_key_id = NO\r\n [ mine ] ; a comment\r\n${KEYS}  aws_session_token = nested\r\n`;
  expect(await read(text, "mine")).toMatchObject({ accessKeyId: "AKID", secretAccessKey: "secret/1=" });
  expect(await read(text, "mine")).not.toHaveProperty("sessionToken");
});

test.each([
  ["a section that never closes", `[${" ".repeat(200_000)}`],
  ["a section that is nothing but blanks", `[${" ".repeat(200_000)}]`],
  ["a key without a value", `aws_access_key_id${" ".repeat(200_000)}`],
  ["a value that is nothing but blanks", `aws_access_key_id =${" ".repeat(200_000)}\u2028`],
  ["many lines of blanks", `[${" ".repeat(4000)}\n`.repeat(50)],
])("12.19: %s takes no time", async (_what, line) => {
  const before = process.cpuUsage();
  expect(await read(`${line}\n[mine]\n${KEYS}`, "mine")).toMatchObject({ accessKeyId: "AKID" });
  const { user } = process.cpuUsage(before);
  expect(user / 1000).toBeLessThan(500);
});
