import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { ownEnvironment } from '../../playground/paths.ts'

const told = z.object({
  /** Of the request's body. */
  bytes: z.int(),
  /** Of its `input`. */
  items: z.int(),
  session: z.string().nullable(),
  cache: z.string().nullable(),
  tokens: z.object({ input: z.int(), output: z.int(), cached: z.int() }),
})

/** A Python program that talks by one of OpenAI's SDKs. */
export interface PythonClient {
  turn(items: readonly object[]): Promise<z.infer<typeof told>>
  end(): Promise<void>
}

export const startPythonClient = (options: {
  readonly url: string
  /** Folder of the SDKs. */
  readonly sdks: string
  readonly by: string
  readonly stream: boolean
  readonly model: string
}): PythonClient => {
  const script = fileURLToPath(new URL('python_turns.py', import.meta.url))
  const child = spawn('python3', [script, options.by, options.stream ? 'streamed' : 'whole'], {
    env: { ...ownEnvironment(), PYTHONPATH: options.sdks, GATEWAY_URL: options.url, MODEL: options.model },
  })
  const exited = once(child, 'exit')
  let errors = ''
  child.stderr.on('data', (text) => {
    errors += String(text)
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    turn: async (items) => {
      child.stdin.write(`${JSON.stringify(items)}\n`)
      const { value, done } = await lines.next()
      if (done === true) throw new Error(`the client ended: ${errors}`)
      return told.parse(JSON.parse(value))
    },
    end: async () => {
      child.stdin.end()
      await exited
    },
  }
}
