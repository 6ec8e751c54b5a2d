/**
 * Shell-style match of one name, as the keys of configInterrupts use it: `*` any run of characters but `/`, `?` one of
 * them, `[…]` a class (`[^…]` its opposite), `\` takes the next character literally. A malformed pattern matches nothing.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  const expression = toExpression(pattern)
  return expression !== undefined && expression.test(name)
}

function toExpression(pattern: string): RegExp | undefined {
  let source = ''
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at)
    if (character === '*') source += '[^/]*'
    else if (character === '?') source += '[^/]'
    else if (character === '\\') {
      at++
      if (at >= pattern.length) return undefined
      source += literal(pattern.charAt(at))
    } else if (character === '[') {
      const end = pattern.indexOf(']', at + (pattern.charAt(at + 1) === '^' ? 3 : 2))
      if (end < 0) return undefined
      const inside = pattern.slice(at + 1, end).replaceAll(/[\\[\]]/g, '\\$&')
      source += `[${inside}]`
      at = end
    } else source += literal(character)
  }
  try {
    return new RegExp(`^${source}$`, 'su')
  } catch {
    return undefined // a class such as [z-a]
  }
}

const literal = (character: string): string => character.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
