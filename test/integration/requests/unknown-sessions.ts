import { describe, expect, test } from '@jest/globals'
import { exchangeRaw } from '../support/raw-http.ts'
import { inferencePaths } from '../support/scripted-responses.ts'
import { createdId, look, unknownId, use } from '../support/sessions.ts'
import { fixture } from './shared-fixture.ts'
import { asJson, someBody, someJson, watching, wellFramed } from './support.ts'

const { stack } = fixture

describe('a turn of a session that is not there', () => {
  test.each(inferencePaths)('gets a whole response on %s', async (path) => {
    const { result, arrivals } = await watching(fixture, () => use(stack, unknownId, { path, body: someBody }))

    expect(result.status).toBe(200)
    expect(result.headers.get('x-context-cache')).toBe('miss; reason=session_not_found')
    expect(result.headers.get('x-session-id')).toBeNull()
    expect(arrivals).toMatchObject([{ request: { path, body: someJson } }])
    expect((await look(stack, unknownId)).status).toBe(404)
  })

  test('reads byte for byte the same for an id that was never given out and for another tenant’s', async () => {
    const id = await createdId(stack)
    /** But for the time, and for how long it took. */
    const answerTo = async (sessionId: string): Promise<string> => {
      const headers = ['authorization: Bearer another-key', asJson, `x-session-id: ${sessionId}`]
      const request = wellFramed('POST /v1/completions', { headers, body: someJson })
      const response = (await exchangeRaw(stack.port, request)).toString('latin1')
      return response
        .replaceAll(/^(date|x-envoy-upstream-service-time): .*$/gm, '$1: …')
        .split('\r\n')
        .sort()
        .join('\r\n')
    }

    const unknown = await answerTo(unknownId)

    expect(await answerTo(id)).toBe(unknown)
    expect(unknown).toContain('x-context-cache: miss; reason=session_not_found')
  })
})
