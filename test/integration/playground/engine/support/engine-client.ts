// What tests ask of an engine, without an SDK in between.

/** One slot as GET /slots reports it. */
export interface SlotState {
  readonly id: number
  readonly id_task: number
  readonly n_ctx: number
  readonly is_processing: boolean
  readonly n_tokens: number
  readonly session: string | null
}

/** An answer of any status. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** A completion, as far as tests look at it. */
export interface Completion {
  readonly text: string
  readonly finishReason: string
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly completionTokens: number
}

/** Talks to the engine at `url`. */
export function createEngineClient(url: string) {
  const post = (path: string, body: unknown, init: RequestInit = {}) =>
    fetch(url + path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), ...init })
  const answer = async (response: Response): Promise<Answer> => ({
    status: response.status,
    body: await response.json(),
  })

  return {
    post,
    postJson: async (path: string, body: unknown, init: RequestInit = {}) => answer(await post(path, body, init)),
    getJson: async (path: string) => answer(await fetch(url + path)),
    getText: async (path: string) => (await fetch(url + path)).text(),
    slots: () => readSlots(url),
    /** A greedy completion of up to 16 tokens, unless `fields` say otherwise. Throws when the answer is not 200. */
    async complete(
      prompt: unknown,
      fields: Record<string, unknown> = {},
      headers: Record<string, string> = {},
    ): Promise<Completion> {
      const body = { model: 'tiny-random', prompt, max_tokens: 16, temperature: 0, ...fields }
      const response = await post('/v1/completions', body, { headers })
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
      const { choices, usage } = JSON.parse(await response.text())
      return {
        text: choices[0].text,
        finishReason: choices[0].finish_reason,
        promptTokens: usage.prompt_tokens,
        cachedTokens: usage.prompt_tokens_details.cached_tokens,
        completionTokens: usage.completion_tokens,
      }
    },
    slotAction: async (slot: number | string, action: string, body: unknown = {}) =>
      answer(await post(`/slots/${slot}?action=${action}`, body)),
    /** Waits until `holds` is true of the slots. */
    async slotsUntil(holds: (slots: readonly SlotState[]) => boolean): Promise<readonly SlotState[]> {
      for (;;) {
        const slots = await readSlots(url)
        if (holds(slots)) return slots
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
  }
}

async function readSlots(url: string): Promise<readonly SlotState[]> {
  const response = await fetch(`${url}/slots`)
  return JSON.parse(await response.text())
}

/** Readable text of exactly `tokens` tokens in the byte vocabulary, different for each `seed`. */
export function textOf(tokens: number, seed: number): string {
  let state = seed * 2_654_435_761 + 1
  return Array.from({ length: tokens }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return String.fromCharCode(97 + ((state >>> 16) % 26))
  }).join('')
}
