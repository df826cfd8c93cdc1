/** One document of what was drawn. Its policy allows the one style sheet in it, by its hash, and pictures that stand in that sheet. */
import { createHash } from "node:crypto";

export interface StillPage {
  readonly title: string;
  readonly css: string;
  readonly body: string;
}

export function documentOf({ title, css, body }: StillPage): { readonly html: string; readonly policy: string } {
  const hash = createHash("sha256").update(css).digest("base64");
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const html = [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8">`,
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    `<meta name="viewport" content="width=device-width, initial-scale=1">`,
    `<meta name="color-scheme" content="dark light"><meta name="referrer" content="no-referrer">`,
    `<title>${escaped(title)}</title>`,
    `<style>${css}</style></head>`,
    `<body>${body}</body></html>`,
    "",
  ].join("\n");
  return { html, policy };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
