import { type ComponentChildren, h, type VNode } from '../vendor/preact.js'
import { useId, useRef } from '../vendor/preact-hooks.js'

/** Asks before it acts. Escape and Cancel do nothing. */
export const ConfirmButton = (props: {
  /** Of the button that asks. */
  readonly label: string
  readonly question: ComponentChildren
  /** What comes of it. */
  readonly children: ComponentChildren
  /** Of the button that acts. */
  readonly action: string
  readonly isDisabled?: boolean
  readonly onConfirmed: () => void
}): VNode => {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  return (
    <div>
      <button
        type="button"
        class="danger"
        disabled={props.isDisabled ?? false}
        onClick={() => dialog.current?.showModal()}
      >
        {props.label}
      </button>
      <dialog ref={dialog} aria-labelledby={titleId}>
        <h2 id={titleId}>{props.question}</h2>
        <p>{props.children}</p>
        <div class="row">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => {
              dialog.current?.close()
              props.onConfirmed()
            }}
          >
            {props.action}
          </button>
        </div>
      </dialog>
    </div>
  )
}
