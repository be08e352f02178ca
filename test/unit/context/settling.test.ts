import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { createSettling } from '../../../src/context/settling.ts'
import type { TurnTicket } from '../../../src/context/turn-ticket.ts'
import { wholeAnswer } from '../../support/turn-end.ts'
import { until } from '../../support/until.ts'

const ticket: TurnTicket = { turnId: 't', pod: '10.0.0.1:8000', session: undefined }

describe('createSettling', () => {
  test('is settled at once when no turn ends', async () => {
    await expect(createSettling(async () => undefined).settled()).resolves.toBeUndefined()
  })

  test('waits for every turn that is being settled', async () => {
    const ends: (() => void)[] = []
    const settling = createSettling(
      () =>
        new Promise((resolve) => {
          ends.push(resolve)
        }),
    )
    const turns = [settling.endTurn(ticket, wholeAnswer), settling.endTurn(ticket, wholeAnswer)]
    let isSettled = false
    const settled = settling.settled().then(() => {
      isSettled = true
    })

    ends[0]?.()
    await turns[0]
    await setImmediate()
    const between = isSettled
    ends[1]?.()
    await until(() => isSettled)

    await expect(Promise.all([settled, ...turns])).resolves.toHaveLength(3)
    expect(between).toBe(false)
  })

  test('is settled although a turn could not be', async () => {
    const settling = createSettling(async () => Promise.reject(new Error('broken')))
    const ending = settling.endTurn(ticket, wholeAnswer)

    await expect(settling.settled()).resolves.toBeUndefined()
    await expect(ending).rejects.toThrow('broken')
  })
})
