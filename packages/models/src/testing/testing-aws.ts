/**
 * AWS for tests: frames as Bedrock sends them, and a judge of signatures that works from what arrived. It shares no line with
 * what signs.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";

export function awsChunk(event: string): Buffer {
  const payload = JSON.stringify({ bytes: Buffer.from(event).toString("base64"), p: "abcdefgh" });
  return awsFrame({ ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" }, payload);
}

export function awsFrame(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => textHeader(name, value)));
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, head, body]);
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, tail]);
}

function textHeader(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, Buffer.from(value)]);
}

export interface AwsJudge {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly region: string;
}

interface Arrived {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly source: string;
}

/** Why this POST must be refused; undefined when its signature is right. */
export function awsRefusal({ path, headers, source }: Arrived, judge: AwsJudge): string | undefined {
  const header = (name: string): string => String(headers[name] ?? "");
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/bedrock\/aws4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/;
  const [, keyId, day, region, signed = "", signature = ""] = pattern.exec(header("authorization")) ?? [];
  if (keyId !== judge.accessKeyId || region !== judge.region) return "another key or region";
  const date = header("x-amz-date");
  if (!date.startsWith(`${day}T`) || Math.abs(Date.now() - timeOf(date)) > 300_000) return "another time";
  if (header("x-amz-security-token") !== (judge.sessionToken ?? "")) return "another session token";
  const names = signed.split(";");
  if (!names.includes("host") || !names.includes("x-amz-date")) return "too little is signed";
  if (judge.sessionToken !== undefined && !names.includes("x-amz-security-token")) return "the token is not signed";
  const [route = "", query = ""] = path.split("?");
  const request =
    `POST\n${escapeAgain(route)}\n${query}\n` +
    `${names.map((name) => `${name}:${header(name)}\n`).join("")}\n${signed}\n${sha256(source)}`;
  let key = Buffer.from(`AWS4${judge.secretAccessKey}`);
  for (const step of [day ?? "", region, "bedrock", "aws4_request"]) key = mac(key, step);
  const own = mac(key, `AWS4-HMAC-SHA256\n${date}\n${day}/${region}/bedrock/aws4_request\n${sha256(request)}`);
  return timingSafeEqual(own, Buffer.from(signature, "hex")) ? undefined : "a wrong signature";
}

function timeOf(date: string): number {
  return Date.parse(date.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

/** The path that arrived, every byte of it escaped that is neither a plain letter nor a slash. */
function escapeAgain(route: string): string {
  let escaped = "";
  for (const byte of Buffer.from(route)) {
    const letter = String.fromCharCode(byte);
    escaped += /[A-Za-z0-9/._~-]/.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return escaped;
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

function mac(key: Buffer, text: string): Buffer<ArrayBuffer> {
  return Buffer.from(createHmac("sha256", key).update(text, "utf8").digest());
}
