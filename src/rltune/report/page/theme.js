try { // before anything is drawn; where the browser keeps nothing for a file, it goes by the system
  const theme = localStorage.getItem("rltune-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { document.documentElement.removeAttribute("data-theme"); }
