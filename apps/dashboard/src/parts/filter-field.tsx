/** The words by which a list is filtered, `q` of the address; the key / goes there. */
import { useRef, type ReactNode } from "react";
import { look, usePlace } from "../router.ts";
import { Icon, Kbd } from "./base.tsx";
import { useKeys } from "./keys.ts";

export function FilterField({ label, placeholder }: { label: string; placeholder: string }): ReactNode {
  const { query } = usePlace();
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus() });
  return (
    <label className="filters">
      <Icon name="search" tone="fg2" />
      <input
        ref={field}
        type="search"
        aria-label={label}
        placeholder={placeholder}
        defaultValue={query.get("q") ?? ""}
        onChange={(event) => look({ q: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
        }}
      />
      <Kbd>/</Kbd>
    </label>
  );
}
