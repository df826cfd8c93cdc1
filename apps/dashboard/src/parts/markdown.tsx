/**
 * Markdown of agents, drawn from tokens as elements: nothing becomes HTML by itself. Raw HTML is text, an image is its
 * address, a link leads only to http or https and shows its host.
 */
import { marked, type Token, type Tokens } from "marked";
import type { ReactNode } from "react";
import { shown } from "../text/shown.ts";

const MAX_CHARS = 200_000;

export function Markdown({ text }: { text: string }): ReactNode {
  if (text.length > MAX_CHARS) return <pre className="out">{shown(text)}</pre>;
  return <div className="md">{blocks(marked.lexer(text, { gfm: true }))}</div>;
}

function blocks(tokens: readonly Token[]): ReactNode {
  return tokens.map((token, index) => <Block key={index} token={token} />);
}

function Block({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case "space":
      return null;
    case "heading":
      return <p className="h">{inline(token.tokens)}</p>;
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "text":
      return token.tokens === undefined ? shown(token.text) : <>{inline(token.tokens)}</>;
    case "code":
      return <pre className="out">{shown((token as Tokens.Code).text)}</pre>;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "hr":
      return <hr />;
    case "list": {
      const list = token as Tokens.List;
      const entries = list.items.map((item, index) => (
        <li key={index}>
          {item.task ? (item.checked === true ? "[x] " : "[ ] ") : ""}
          {blocks(item.tokens)}
        </li>
      ));
      return list.ordered ? <ol>{entries}</ol> : <ul>{entries}</ul>;
    }
    case "table": {
      const { header, rows } = token as Tokens.Table;
      return (
        <table>
          <thead>
            <tr>
              {header.map((cell, index) => (
                <th key={index}>{inline(cell.tokens)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                {row.map((cell, index) => (
                  <td key={index}>{inline(cell.tokens)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      );
    }
    default:
      return <p>{shown(token.raw)}</p>;
  }
}

function inline(tokens: readonly Token[] | undefined): ReactNode {
  return (tokens ?? []).map((token, index) => <Inline key={index} token={token} />);
}

function Inline({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case "strong":
      return <b>{inline(token.tokens)}</b>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <s>{inline(token.tokens)}</s>;
    case "codespan":
      return <code>{shown(token.text)}</code>;
    case "br":
      return <br />;
    case "link":
      return <Leading token={token as Tokens.Link} />;
    case "image":
      return <code>{shown(token.raw)}</code>;
    case "text":
    case "escape":
      return "tokens" in token && token.tokens !== undefined ? inline(token.tokens) : shown(token.text);
    default:
      return shown(token.raw);
  }
}

function Leading({ token }: { token: Tokens.Link }): ReactNode {
  const url = URL.canParse(token.href) ? new URL(token.href) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) return shown(token.raw);
  return (
    <a href={url.href} className="out-link" target="_blank" rel="noopener noreferrer">
      {inline(token.tokens)} <span className="fg2">({url.host})</span>
    </a>
  );
}
