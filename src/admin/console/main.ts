import { App } from './app.tsx'
import { h, render } from './vendor/preact.js'

const root = document.querySelector('#app')
if (root !== null) {
  root.replaceChildren()
  render(h(App, {}), root)
}
