import { ApiError, signIn, wordsOf } from '../api.ts'
import { h, type VNode } from '../vendor/preact.js'
import { useRef, useState } from '../vendor/preact-hooks.js'

/** Asks for the operators' token. */
export const SignInView = ({ onSignedIn }: { readonly onSignedIn: () => void }): VNode => {
  const field = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (): Promise<void> => {
    const input = field.current
    if (input === null) return
    setBusy(true)
    try {
      await signIn(input.value)
      onSignedIn()
    } catch (error) {
      const isWrong = error instanceof ApiError && error.status === 401
      setProblem(isWrong ? 'This is not the token of this gateway.' : wordsOf(error))
      setBusy(false)
      input.focus()
    } finally {
      input.value = ''
    }
  }
  return (
    <form
      class="card sign-in"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <h1 tabIndex={-1}>Sign in</h1>
      <p class="muted">
        This console asks for the operators' token: the value of <code>listen.admin.token</code>.
      </p>
      <label for="token">Token</label>
      <input
        id="token"
        ref={field}
        type="password"
        required
        autocomplete="current-password"
        aria-describedby="sign-in-problem"
        aria-invalid={problem !== undefined}
      />
      <p id="sign-in-problem" class="problem" role="alert">
        {problem}
      </p>
      <button type="submit" class="primary" disabled={isBusy}>
        Sign in
      </button>
    </form>
  )
}
