/**
 * Sends one body again and again on each of some connections, from a process of its own. Its argument is an
 * {@link AttackPlan} as JSON. At SIGTERM it sends no more, and prints the answers by status as JSON.
 */

import { Agent, request } from 'undici'
import { bodyOf } from './bodies.ts'

export interface AttackPlan {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly kind: string
  readonly seed: number
  readonly bytes: number
  readonly connections: number
  /** Bodies of each connection. Undefined: until SIGTERM. */
  readonly times?: number
}

const plan: AttackPlan = JSON.parse(process.argv[2] ?? '')
const body = bodyOf(plan.kind, { ...plan, model: 'bench' })
const dispatcher = new Agent({ connections: plan.connections, bodyTimeout: 0, headersTimeout: 0 })
const answers: Record<string, number> = {}
let isOver = false

const send = async (): Promise<string> => {
  try {
    const answer = await request(plan.url, { method: 'POST', headers: plan.headers, body, dispatcher })
    await answer.body.dump()
    return String(answer.statusCode)
  } catch {
    return 'none'
  }
}

const sendAll = async (): Promise<void> => {
  for (let sent = 0; !isOver && sent < (plan.times ?? Number.POSITIVE_INFINITY); sent += 1) {
    const status = await send()
    answers[status] = (answers[status] ?? 0) + 1
  }
}

process.once('SIGTERM', () => {
  isOver = true
})
process.stdout.write('ready\n')
await Promise.all(Array.from({ length: plan.connections }, sendAll))
process.stdout.write(`${JSON.stringify(answers)}\n`)
process.exit(0)
