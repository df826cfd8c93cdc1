/** What lies over the page until it is closed: by Escape, by a press beside it, or by what it holds. */
import { useEffect, useRef, type ReactNode } from "react";

interface DialogProps {
  readonly label: string;
  readonly onClose: () => void;
  readonly className?: string;
  readonly children: ReactNode;
}

export function Dialog({ label, onClose, className = "", children }: DialogProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { activeElement: before } = document;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label={label}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className={`palette-in ${className}`}>{children}</div>
    </dialog>
  );
}
