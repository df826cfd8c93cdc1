/**
 * AWS Signature Version 4, in the headers of a request. Signed are the host, the date, a session token, and the headers that
 * are handed in; the path is encoded once more than it travels, as every service but S3 wants it.
 */
import { createHash, createHmac } from "node:crypto";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface SigningOptions {
  readonly method: string;
  readonly url: URL;
  /** Also signed; names in any case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly region: string;
  readonly service: string;
  readonly credentials: AwsCredentials;
  readonly now: Date;
}

const ALGORITHM = "AWS4-HMAC-SHA256";

/** The headers to send beside those that were handed in. */
export function signAws(options: SigningOptions): Record<string, string> {
  const { credentials, now, region, service } = options;
  const time = now.toISOString().replace(/[-:]|\.\d{3}/g, "");
  const scope = [time.slice(0, 8), region, service, "aws4_request"];
  const added = {
    "x-amz-date": time,
    ...(credentials.sessionToken === undefined ? {} : { "x-amz-security-token": credentials.sessionToken }),
  };
  const { text, signedHeaders } = canonical(options, added);
  const toSign = [ALGORITHM, time, scope.join("/"), hash(text)].join("\n");
  const key = scope.reduce<Buffer>(hmac, Buffer.from(`AWS4${credentials.secretAccessKey}`));
  const parts = [
    `Credential=${credentials.accessKeyId}/${scope.join("/")}`,
    `SignedHeaders=${signedHeaders}`,
    `Signature=${hmac(key, toSign).toString("hex")}`,
  ];
  return { ...added, authorization: `${ALGORITHM} ${parts.join(", ")}` };
}

function canonical(
  { method, url, headers, body }: SigningOptions,
  added: Readonly<Record<string, string>>,
): { readonly text: string; readonly signedHeaders: string } {
  const lines = Object.entries({ host: url.host, ...headers, ...added })
    .map(([name, value]): readonly [string, string] => [name.toLowerCase(), value.trim().replace(/ +/g, " ")])
    .toSorted(byText);
  const query = [...url.searchParams]
    .map(([name, value]): readonly [string, string] => [encode(name), encode(value)])
    .toSorted((a, b) => byText(a, b) || (a[1] < b[1] ? -1 : 1))
    .map((pair) => pair.join("="))
    .join("&");
  const signedHeaders = lines.map(([name]) => name).join(";");
  const path = url.pathname.split("/").map(encode).join("/");
  const text = [
    method,
    path,
    query,
    ...lines.map(([name, value]) => `${name}:${value}`),
    "",
    signedHeaders,
    hash(body),
  ].join("\n");
  return { text, signedHeaders };
}

function byText(a: readonly [string, string], b: readonly [string, string]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}

/** Everything but letters, digits and `-._~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
