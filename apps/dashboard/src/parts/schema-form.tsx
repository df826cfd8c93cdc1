/** A form from the JSON Schema of an MCP server's question: flat objects of texts, numbers, choices and ticks, as MCP has them. */
import type { ReactNode } from "react";
import { line } from "../text/shown.ts";

interface FormProps {
  readonly schema: unknown;
  readonly value: Readonly<Record<string, unknown>>;
  readonly onChange: (value: Readonly<Record<string, unknown>>) => void;
}

interface Field {
  readonly name: string;
  readonly title: string;
  readonly type: string;
  readonly choices: readonly string[];
  readonly isRequired: boolean;
}

export function FormOf({ schema, value, onChange }: FormProps): ReactNode {
  return fieldsOf(schema).map((field) => (
    <label key={field.name} className="fl">
      <span className="h">
        {line(field.title)} {field.isRequired ? "" : <span className="fg2">optional</span>}
      </span>
      <Input
        field={field}
        value={value[field.name]}
        onChange={(next) => onChange(withAnswer(value, field.name, next))}
      />
    </label>
  ));
}

/** What is emptied again was not answered. */
function withAnswer(before: FormProps["value"], name: string, next: unknown): FormProps["value"] {
  const others = Object.fromEntries(Object.entries(before).filter(([key]) => key !== name));
  return next === "" || Number.isNaN(next) ? others : { ...others, [name]: next };
}

function Input({
  field,
  value,
  onChange,
}: {
  field: Field;
  value: unknown;
  onChange: (value: unknown) => void;
}): ReactNode {
  if (field.type === "boolean")
    return <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} />;
  if (field.choices.length > 0)
    return (
      <select
        className="in"
        required={field.isRequired}
        value={typeof value === "string" ? value : ""}
        onChange={(event) => onChange(event.target.value)}
      >
        <option value="" />
        {field.choices.map((choice) => (
          <option key={choice} value={choice}>
            {line(choice)}
          </option>
        ))}
      </select>
    );
  const isNumber = field.type === "number" || field.type === "integer";
  return (
    <input
      className="in"
      type={isNumber ? "number" : "text"}
      required={field.isRequired}
      value={typeof value === "string" || typeof value === "number" ? value : ""}
      onChange={(event) => onChange(isNumber ? event.target.valueAsNumber : event.target.value)}
    />
  );
}

function fieldsOf(schema: unknown): readonly Field[] {
  if (!isRecord(schema) || !isRecord(schema["properties"])) return [];
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(schema["properties"]).map(([name, given]) => {
    const of = isRecord(given) ? given : {};
    const choices = Array.isArray(of["enum"]) ? of["enum"].filter((one) => typeof one === "string") : [];
    return {
      name,
      title: typeof of["title"] === "string" ? of["title"] : name,
      type: typeof of["type"] === "string" ? of["type"] : "string",
      choices,
      isRequired: required.includes(name),
    };
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
