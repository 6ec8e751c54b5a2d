/** Elements of the page. Text never becomes markup: all of it is set as text. */

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** A new element; attributes that are false or undefined are left out, and `true` is an attribute without a value. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const created = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    created.setAttribute(name, value === true ? '' : String(value))
  }
  created.append(...children)
  return created
}

/** An element of page.html. */
export function byId(id: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(`#${id}`)
  if (found === null) throw new Error(`page.html has no #${id}`)
  return found
}

/** What is the same stays untouched, so that screen readers and selections do too. */
export function setText(target: HTMLElement, text: string): void {
  if (target.textContent !== text) target.textContent = text
}

/** The same for elements: those that are equal stay, with their focus and what is selected in them. */
export function setChildren(target: HTMLElement, children: readonly HTMLElement[]): void {
  const present = [...target.children]
  if (present.length === children.length && children.every((child, index) => child.isEqualNode(present[index] ?? null)))
    return
  target.replaceChildren(...children)
}

/** A command, and a button that copies it. */
export function commandToCopy(command: string): HTMLElement {
  const code = element('code', {}, command)
  const button = element('button', { type: 'button', 'aria-label': `Copy ${command}` }, 'Copy')
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(command).then(
      () => showBriefly(button, 'Copied'),
      () => window.getSelection()?.selectAllChildren(code), // the person copies it by hand
    )
  })
  return element('div', { class: 'command' }, code, button)
}

const shownMs = 1_500

function showBriefly(button: HTMLElement, text: string): void {
  const before = button.textContent
  button.textContent = text
  setTimeout(() => (button.textContent = before), shownMs)
}
