import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { post } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import type { PodReply } from '../support/pod-script.ts'
import { streamedResponse } from '../support/scripted-responses.ts'
import { createdId, untilTurns } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

/** More than the requests that Envoy lets run at once in a cluster with default settings. */
const streams = 1100
/** How many are opened at a time: what is tried is how many can be open, not how fast a small machine opens them. */
const atATime = 50

const { pod, stack } = useScriptedStack({ store: 'redis' })

const path = '/v1/chat/completions'
const body = { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] }

const openStream = (headers: Record<string, string>): Promise<Response> =>
  post(`${stack.url}${path}`, { ...body, stream: true }, { headers })

test(`${streams} concurrent streams of old and new sessions are all served and counted`, async () => {
  const oldSessions = await Promise.all(Array.from({ length: atATime / 2 }, () => createdId(stack, { body })))
  const turnsEach = 1 + streams / atATime
  const sessionsBefore = await metric(stack, 'sessions_active')
  const [first = '', ...others] = streamedResponse(path)
  const open: PodReply[] = []
  pod.otherwise((_request, reply) => {
    reply.write(first)
    open.push(reply)
  })

  const responses: Response[] = []
  while (responses.length < streams) {
    const opened = oldSessions.flatMap((id) => [
      openStream({ 'x-session-id': id }),
      openStream({ 'x-session-ttl': '600' }),
    ])
    responses.push(...(await Promise.all(opened)))
  }
  expect(open).toHaveLength(streams)
  // The creates of the old sessions are recorded after their responses.
  await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(streams))
  // Envoy ends the stream of a create with its response; a turn of an old session keeps none.
  await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(streams / 2))
  const texts = Promise.all(responses.map((response) => response.text()))
  for (const reply of open) {
    for (const piece of others) reply.write(piece)
    reply.end()
  }

  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(await texts)).toEqual(new Set([[first, ...others].join('')]))
  const ids = new Set(responses.map(({ headers }) => headers.get('x-session-id')))
  expect(ids.size).toBe(oldSessions.length + streams / 2)
  for (const id of oldSessions) await untilTurns(stack, id, turnsEach)
  await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
  await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(0))
  expect(await metric(stack, 'sessions_active')).toBe(sessionsBefore + streams / 2)
})
