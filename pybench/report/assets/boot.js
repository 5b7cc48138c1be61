/* Before anything is drawn: the theme that was chosen earlier, so that the page does not flash. */
(() => {
  try {
    const theme = localStorage.getItem("pybench-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch { /* A browser may keep storage from a page opened as a file: then the theme is the system's. */ }
  document.documentElement.classList.add("js");
})();
