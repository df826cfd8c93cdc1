/** Copies a text, and says so. */
import { useState, type ReactNode } from "react";
import { line } from "../text/shown.ts";
import { Icon } from "./base.tsx";

export function CopyButton({ text, label }: { text: string; label: string }): ReactNode {
  const [said, setSaid] = useState("");
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setSaid("copied"),
      () => setSaid("this browser does not allow it"),
    );
  };
  return (
    <button type="button" className="btn quiet" title={line(text)} onClick={copy} onBlur={() => setSaid("")}>
      <Icon name="copy" />
      <span aria-live="polite">{said === "" ? label : said}</span>
    </button>
  );
}
