/**
 * Pictures of the console at a real run with some traffic: `node test/console/take-screenshots.ts FOLDER [SECONDS]`, after
 * `npm run build`. docs/console.png is its `overview-light.png`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { model, post } from '../integration/support/client.ts'
import { embeddedPods, type Stack, startStack } from '../integration/support/stack.ts'
import { launchBrowser } from './launch-browser.ts'

const [, , folder = '.run/console', seconds = '240'] = process.argv
const conversations = 9
const turnsOfConversation = 16
const names = ['x-claude-code-session-id', 'thread-id', 'x-session-affinity'] as const
const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index}`).join(' ')

/** A turn of a conversation, which begins anew when it has become long. Returns the session's id. */
const turn = async (stack: Stack, conversation: number, round: number): Promise<string> => {
  const name = names[conversation % names.length] ?? 'thread-id'
  const prompt = `conversation ${conversation} ${words(200 + (round % turnsOfConversation) * 12)}`
  const body = { model, prompt, max_tokens: 12, stream: true, stream_options: { include_usage: true } }
  const headers = {
    authorization: `Bearer key-of-client-${conversation % 2}`,
    [name]: `conversation-${conversation}-${Math.floor(round / turnsOfConversation)}`,
  }
  const answer = await post(`${stack.url}/v1/completions`, body, { headers })
  await answer.text()
  return answer.headers.get('x-session-id') ?? ''
}

const converse = async (stack: Stack): Promise<string> => {
  const end = performance.now() + Number(seconds) * 1000
  const rounds = Array.from({ length: conversations }, (_, index) => index)
  const turns = new Map<string, number>()
  for (let step = 0; performance.now() < end; step += 1) {
    // An agent has some turns in a row, then others come between.
    const conversation = (Math.floor(step / 3) * 5) % conversations
    const round = rounds[conversation] ?? 0
    rounds[conversation] = round + 1
    const id = await turn(stack, conversation, round)
    turns.set(id, (turns.get(id) ?? 0) + 1)
    // As people do: busy for a while, then less.
    await sleep(150 + 600 * (1 + Math.sin(performance.now() / 20_000)) * Math.random())
  }
  const [longest] = [...turns].sort(([, one], [, other]) => other - one)
  return longest?.[0] ?? ''
}

const stack = await startStack({ pods: embeddedPods({ contextTokensPerSlot: 8_192 }) })
const browser = await launchBrowser()
try {
  const id = await converse(stack)
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360]) {
      const page = await browser.newPage({ colorScheme, locale: 'en-GB', viewport: { width, height: 860 } })
      const shoot = (name: string): Promise<Buffer> =>
        page.screenshot({
          path: `${folder}/${name}-${colorScheme}${width === 1280 ? '' : `-${width}`}.png`,
          fullPage: true,
        })
      await page.goto(`${stack.gateway().adminUrl}/console/`)
      await page.getByText('● Live').waitFor()
      await page.locator('canvas').first().waitFor()
      await shoot('overview')
      await page.getByRole('link', { name: 'Pods' }).click()
      await page.locator('tbody tr').first().waitFor()
      await shoot('pods')
      await page.getByRole('link', { name: 'Sessions' }).click()
      await page.getByRole('columnheader', { name: 'Digest' }).waitFor({ state: 'attached' })
      await shoot('sessions')
      await page.getByRole('link', { name: 'Tenants' }).click()
      await page.getByRole('columnheader', { name: 'Named' }).waitFor({ state: 'attached' })
      await shoot('tenants')
      await page.getByRole('link', { name: 'Sessions' }).click()
      await page.getByLabel('Session id').fill(id)
      await page.keyboard.press('Enter')
      await page.locator('.timeline > li').first().waitFor()
      await shoot('session')
      await page.close()
    }
} finally {
  await browser.close()
  await stack.stop()
}
