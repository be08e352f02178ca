import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { create } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'
import { holdRequests, send, waiting } from './support.ts'

const { stack, pod: scripted } = useScriptedStack({
  envoyWaits: 'as-configured',
  env: { CTX_ADMISSION_REQUIREMENTS: 'prefill=R1:1', CTX_ADMISSION_MAX_WAIT_MS: '60000' },
})

/** Longer than a health check waits for its answer, and shorter than a ping does (5 s). */
const standsStillMs = 3_200

test('turns that wait in a gateway which stands still for seconds get its decision', async () => {
  const pod = holdRequests(scripted)
  const running = send(stack, 'A')
  await eventually(() => expect(pod.running()).toEqual(['A']))
  const waits = [send(stack, 'A'), send(stack, 'A'), create(stack, { body: { model: 'A', prompt: 'and this' } })]
  await eventually(async () => expect(await waiting(stack)).toBe(waits.length))

  stack.gateway().child.pause()
  await delay(standsStillMs)
  stack.gateway().child.resume()
  pod.release(true)

  const answers = await Promise.all([running, ...waits])
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(answers.map(({ headers }) => headers.get('x-session-id'))).not.toContain(null)
})
