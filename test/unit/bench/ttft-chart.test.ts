import { expect, test } from '@jest/globals'
import { renderTtftChart } from '../../../bench/ttft-chart.ts'

const row = (tokens: number, cold: number, otherPodLoaded: number, samePod: number) => ({
  tokens,
  medianMs: { cold, otherPodLoaded, samePod },
})

const barHeights = (svg: string): readonly number[] =>
  [...svg.matchAll(/<rect [^>]*height="([\d.]+)" fill/g)].map(([, height]) => Number(height))

test('bar heights are proportional to the figures within a panel', () => {
  const svg = renderTtftChart([{ title: 'engine', rows: [row(500, 400, 100, 50), row(1000, 800, 200, 40)] }])

  const [, , , ...heights] = barHeights(svg)
  const [cold = 0] = heights
  expect(heights.map((height) => Math.round((height / cold) * 400))).toEqual([400, 100, 50, 800, 200, 40])
})

test('highest bar stays below the title', () => {
  const svg = renderTtftChart([{ title: 'engine', rows: [row(500, 3956, 243, 157)] }])

  expect(Math.max(...barHeights(svg))).toBeLessThanOrEqual(210)
})

test('each engine has a panel with its figures and prompt lengths as text', () => {
  const svg = renderTtftChart([
    { title: 'one <engine>', rows: [row(500, 343.4, 50, 53)] },
    { title: 'other', rows: [row(2000, 1892, 232, 149)] },
  ])

  expect(svg).toContain('one &lt;engine&gt;: time to first token, ms')
  for (const label of ['343', '50', '53', '500', '1892', '232', '149', '2000'])
    expect(svg).toContain(`>${label}</text>`)
})
