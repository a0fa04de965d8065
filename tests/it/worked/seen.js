// What a page shows at the width of its frame; tests/it/worked/seen.rs reads it.
axe.run(document).then((found) => {
  const all = (what) => [...document.querySelectorAll(what)];
  const name = (of) => of.getAttribute('aria-label') || of.textContent.trim().slice(0, 40);
  const isTold = (of) => {
    const hint = of.querySelector(':scope > .all > .hint');
    return hint !== null && hint.getBoundingClientRect().width > 40 && hint.getBoundingClientRect().height > 10;
  };
  const isWider = (of) => of.scrollWidth > of.clientWidth + 1;
  const edge = (of) => Math.min(innerWidth, of.closest('.scroll')?.getBoundingClientRect().right ?? innerWidth);
  const scrollers = all('.scroll');
  const others = all('main *, header *').filter((of) => {
    const how = getComputedStyle(of).overflowX;
    return (how === 'auto' || how === 'scroll') && !of.classList.contains('scroll');
  });
  parent.postMessage({
    width: innerWidth,
    axe: found.violations.map((of) => `${of.id} ${of.nodes[0].html.slice(0, 80)}`),
    rules: found.passes.length,
    wide: document.documentElement.scrollWidth > innerWidth,
    untold: scrollers.filter((of) => isWider(of) && !isTold(of)).concat(others.filter(isWider)).map(name),
    told: scrollers.filter((of) => !isWider(of) && isTold(of)).map(name),
    off: all('.v').filter((of) => of.getBoundingClientRect().right > edge(of) + 1).map(name),
    cut: all('.scroll table, .scroll svg, .scroll pre').filter((of) => {
      const [own, around] = [of, of.closest('.scroll')].map((one) => one.getBoundingClientRect());
      return own.height < 10 || own.top < around.top - 1 || own.bottom > around.bottom + 1;
    }).map(name),
  }, '*');
});
