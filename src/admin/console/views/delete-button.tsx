import { h, type VNode } from '../vendor/preact.js'
import { useRef } from '../vendor/preact-hooks.js'

/** Asks before it acts. Escape and Cancel do nothing. */
export const DeleteButton = (props: { readonly digest: string; readonly onConfirmed: () => void }): VNode => {
  const dialog = useRef<HTMLDialogElement>(null)
  return (
    <div>
      <button type="button" class="danger" onClick={() => dialog.current?.showModal()}>
        Delete session
      </button>
      <dialog ref={dialog} aria-labelledby="delete-title">
        <h2 id="delete-title">
          Delete session <code>{props.digest}</code>?
        </h2>
        <p>
          Its KV is removed from pods and store. Its client's next turn gets an error or starts without a cache. This
          cannot be undone.
        </p>
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
            Delete
          </button>
        </div>
      </dialog>
    </div>
  )
}
