import { describe, expect, test } from "vitest";
import { signAws } from "./aws-signature.ts";

const CREDENTIALS = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };

function signatureOf(
  method: string,
  pathAndQuery: string,
  more: { headers?: Record<string, string>; body?: string } = {},
) {
  const { authorization } = signAws({
    method,
    url: new URL(`https://example.amazonaws.com${pathAndQuery}`),
    headers: more.headers ?? {},
    body: more.body ?? "",
    region: "us-east-1",
    service: "service",
    credentials: CREDENTIALS,
    now: new Date("2015-08-30T12:36:00Z"),
  });
  return /SignedHeaders=(\S+), Signature=(\w+)$/.exec(authorization ?? "")?.slice(1);
}

describe("12.19: signatures are those of AWS's public test suite", () => {
  const FORM = { "content-type": "application/x-www-form-urlencoded" };
  test.each([
    [
      "get-vanilla",
      "GET",
      "/",
      {},
      "host;x-amz-date",
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ],
    [
      "get-vanilla-query-order-key-case",
      "GET",
      "/?Param2=value2&Param1=value1",
      {},
      "host;x-amz-date",
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ],
    [
      "get-header-key-duplicate",
      "GET",
      "/",
      { headers: { "My-Header1": "value2,value2,value1" } },
      "host;my-header1;x-amz-date",
      "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
    ],
    [
      "get-header-value-multiline",
      "GET",
      "/",
      { headers: { "My-Header1": "value1,value2,value3" } },
      "host;my-header1;x-amz-date",
      "ba17b383a53190154eb5fa66a1b836cc297cc0a3d70a5d00705980573d8ff790",
    ],
    [
      "get-unreserved",
      "GET",
      "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
      {},
      "host;x-amz-date",
      "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
    ],
    [
      "get-vanilla-utf8-query",
      "GET",
      "/?ሴ=bar",
      {},
      "host;x-amz-date",
      "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
    ],
    [
      "post-vanilla",
      "POST",
      "/",
      {},
      "host;x-amz-date",
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ],
    [
      "post-vanilla-query",
      "POST",
      "/?Param1=value1",
      {},
      "host;x-amz-date",
      "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
    ],
    [
      "post-x-www-form-urlencoded",
      "POST",
      "/",
      { headers: FORM, body: "Param1=value1" },
      "content-type;host;x-amz-date",
      "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ],
  ])("%s", (_name, method, path, more, signed, signature) => {
    expect(signatureOf(method, path, more)).toEqual([signed, signature]);
  });
});
