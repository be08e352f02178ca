import { status } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import { createTickets } from '../../../src/context/turn-ticket.ts'
import { createContextGateway, podA } from '../../support/context-gateway.ts'
import { ticketOf } from '../../support/decisions.ts'
import { answered, batchOf, entryOf } from '../../unit/accesslog/log-entries.ts'
import { field } from '../../unit/extproc/protobuf-bytes.ts'
import { paths, useFixture } from './extproc-fixture.ts'

const { start } = useFixture()

const header = (name: string, value: string): Buffer => field(1, field(1, name), field(3, value))

test('a peer of the port ends no turn of others, and uses no session with a credential of its own', async () => {
  const gateway = createContextGateway({ pods: [podA] })
  const { id } = await gateway.create()
  const forward = await gateway.use(id, { headers: { 'x-context-request-key': 'key-of-the-request' } })
  const { client } = await start(gateway.service)
  const ticket = ticketOf(forward)

  const report = client.call(paths.accessLogs)
  const forged = [JSON.stringify({ version: 4, ticket }), createTickets('a secret of somebody else').encode(ticket)]
  const failed = { ...answered, status: '503', flags: 'UF', upstreamAddress: podA }
  report.stream.end(
    batchOf(...forged.map((text) => entryOf({ ...failed, ticket: text })), entryOf({ flags: 'DC', requestKey: 'key' })),
  )
  await expect(report.status).resolves.toMatchObject({ code: status.OK })

  expect(gateway.events.of('ticketRefused')).toHaveLength(2)
  expect(gateway.pods.running(podA)).toBe(1)
  expect(gateway.pods.pods()).toMatchObject([{ ready: true }])

  const asked = [
    header(':path', `/v1/context/${id}`),
    header(':method', 'GET'),
    header('authorization', 'Bearer other'),
  ]
  const ask = client.call(paths.process)
  ask.stream.write(field(2, field(1, ...asked)))
  const [reply] = await ask.messages(1)
  ask.stream.end()
  expect(reply?.toString('latin1')).toContain('session_not_found')
})
