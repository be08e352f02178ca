import { readSession, wordsOf } from '../api.ts'
import { h, type VNode } from '../vendor/preact.js'
import { useRef, useState } from '../vendor/preact-hooks.js'

/** Finds a session for whoever has its id. The id leaves the field once it is found. */
export const SessionSearch = ({ onFound }: { readonly onFound: (id: string) => void }): VNode => {
  const field = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState('')
  const search = async (input: HTMLInputElement): Promise<void> => {
    const id = input.value.trim()
    if (id === '') return
    try {
      await readSession(id)
      input.value = ''
      setProblem('')
      onFound(id)
    } catch (error) {
      setProblem(wordsOf(error))
      input.select()
    }
  }
  return (
    <search class="card">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault()
          if (field.current !== null) void search(field.current)
        }}
      >
        <label class="grow">
          Session id
          <input
            ref={field}
            type="text"
            placeholder="ctx_…"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            maxLength={256}
            aria-describedby="search-help search-problem"
          />
        </label>
        <button type="submit" class="primary">
          Show its life
        </button>
      </form>
      <p id="search-help" class="muted">
        An id is a secret of its client: it is in the client's <code>x-session-id</code>, and never in a list, a log or
        this page's address.
      </p>
      <p id="search-problem" class="problem" role="alert">
        {problem}
      </p>
    </search>
  )
}
